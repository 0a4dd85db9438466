"""Steps, clocks, durations, options and what reading noted; counted by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from maiprof_nb import Note, Session, TimeWindow, UsageError
from maiprof_nb.trust import FIGURES, RULES, checks, trust
from tests import tiny_traces as tiny
from tests.trust.asking import failing, outcome


def loop(*lengths: float, launches: int = 20, lost_last: int = 0):
    """Steps one after the other, each with launches and their kernels."""
    events, at, number = [], 1000.0, 0
    for index, length in enumerate(lengths):
        events.append(tiny.step(index, at, length))
        for k in range(launches):
            number += 1
            events.append(tiny.launch(number, at + k, 0.5))
            if not (index == len(lengths) - 1 and k >= launches - lost_last):
                events.append(tiny.kernel(at + k + 1, 0.8, correlation=number))
        at += length
    return events


def test_whole_steps_are_healthy():
    assert not failing(tiny.session(*loop(100, 101, 99, 100)))


def test_a_short_last_step_is_torn():
    found = outcome(tiny.session(*loop(100, 100, 100, 40)), "torn-steps")
    assert (found["outcome"], found["count"]) == ("failed", 1)
    assert "step 3 (40.0 µs instead of 100 µs)" in found["reason"]


def test_a_last_step_whose_device_work_is_cut_is_torn():
    """HTA#76: such a step was silently dropped there; here it is said."""
    session = tiny.session(*loop(100, 100, lost_last=5))
    found = outcome(session, "torn-steps")
    assert "step 1 (the last 5 of 20 launches in it have no device work)" in found["reason"]
    assert trust(session, "steps").state == "reduced"


def test_a_step_without_an_end_is_torn():
    """PyTorch writes -1 for what had not ended."""
    assert {"torn-steps", "unfinished-events"} <= failing(tiny.session(*loop(100, 100, -1)))


def test_kernels_before_their_launch():
    """chakra#167: negative delays; the clocks of host and device disagree by 30 us."""
    events = [tiny.launch(i, 1000 + 100 * i) for i in range(10)]
    events += [
        tiny.kernel(1000 + 100 * i + (-30 if i == 4 else 5), 5, correlation=i) for i in range(10)
    ]
    session = tiny.session(*events)
    found = outcome(session, "work-before-launch")
    assert (found["outcome"], found["count"], found["share"]) == ("failed", 1, 0.1)
    assert "up to 30.0 µs before their launch" in found["reason"]
    assert trust(session, "gpu-utilisation").state == "ok"


def test_absolute_times_as_text_give_no_false_alarm():
    """Ascend/pytorch#133: read as doubles, 20 % of such kernels would be mis-nested."""
    base = 1_712_195_495_000_000
    events = []
    for i in range(50):
        events.append(tiny.operator("op", 0, 0) | {"ts": f"{base + 10 * i}.001", "dur": 1.001})
        events.append(tiny.operator("in", 0, 0) | {"ts": f"{base + 10 * i}.500", "dur": 0.502})
        events.append(tiny.launch(i, 0) | {"ts": f"{base + 10 * i}.600", "dur": 0.1})
        events.append(tiny.kernel(0, 0, correlation=i) | {"ts": f"{base + 10 * i}.601", "dur": 9.9})
    assert not failing(tiny.session(*events))


def test_one_collective_longer_than_the_rest():
    """Hyperloom#1249: one 17.46 s collective at the start makes everything communication."""
    rest = [tiny.kernel(17_461_000 + 20 * i, 10) for i in range(50)]
    found = outcome(tiny.session(tiny.nccl(1000, 17_460_000), *rest), "one-long-event")
    assert found["outcome"] == "failed"
    assert "lasts 17.5 s" in found["reason"]
    assert "may have waited for the other ranks' profilers" in found["reason"]
    assert outcome(tiny.session(*rest), "one-long-event")["outcome"] == "passed"


def test_a_duration_that_cannot_be():
    events = [tiny.operator(f"op{i}", 1000 + 10 * i, 5) for i in range(20)]
    wrong = tiny.operator("overflowed", 1001, 4e15, tid=tiny.AUTOGRAD)
    assert outcome(tiny.session(*events, wrong), "absurd-duration")["outcome"] == "failed"
    whole = tiny.operator("main", 1000, 500, tid=tiny.AUTOGRAD)
    assert outcome(tiny.session(*events, whole), "absurd-duration")["outcome"] == "passed"


def test_stacks_requested_but_missing():
    """kineto#780, pytorch#100253, #101632, #117515."""
    session = tiny.session(tiny.operator("op", 1000, 5), tiny.kernel(1000, 5), with_stack=1)
    assert outcome(session, "stacks-missing")["outcome"] == "failed"
    assert trust(session, "python-in-gaps").state == "not answerable"
    with_them = tiny.session(tiny.operator("op", 1000, 5), tiny.python("f", 999, 9), with_stack=1)
    assert outcome(with_them, "stacks-missing")["outcome"] == "passed"
    never = tiny.session(tiny.operator("op", 1000, 5))
    assert outcome(never, "stacks-missing")["outcome"] == "not-applicable"


def test_shapes_requested_but_missing():
    bare, shaped = {}, {"Input Dims": [[2, 3]]}
    for args, wanted in ((bare, "failed"), (shaped, "passed")):
        session = tiny.session(tiny.operator("op", 1000, 5, **args), record_shapes=1)
        assert outcome(session, "shapes-missing")["outcome"] == wanted


def test_the_profilers_own_cost():
    session = tiny.session(tiny.operator("op", 1000, 5), with_stack=0, profile_memory=1)
    assert "Recorded with profile_memory:" in outcome(session, "profiler-overhead")["reason"]
    plain = tiny.session(tiny.operator("op", 1000, 5), with_stack=0)
    assert outcome(plain, "profiler-overhead")["outcome"] == "passed"


@pytest.mark.parametrize(("dur", "wanted"), [(50, "failed"), (5, "passed")])
def test_recorded_overhead(dur, wanted):
    """50 of 1000 us are 5 %, 5 are 0.5 %."""
    events = [tiny.operator("op", 1000, 1000), tiny.complete("Buffer Flush", "overhead", 1100, dur)]
    assert outcome(tiny.session(*events), "overhead-recorded")["outcome"] == wanted


def test_a_cut_file():
    data = tiny.text([tiny.operator(f"op{i}", 1000 + i, 1) for i in range(5)])
    session = tiny.session_of(data[:-30])
    assert outcome(session, "file-cut")["outcome"] == "failed"
    assert trust(session, "operator-times").state == "reduced"
    assert not failing(tiny.session_of(data))


def test_lost_and_unfinished_events():
    lost = replace(tiny.recording(tiny.operator("op", 1000, 1)), notes=(Note("event-lost", "", 3),))
    found = outcome(Session([lost]), "events-lost")
    assert (found["outcome"], found["count"], found["share"]) == ("failed", 3, 0.75)
    events = [tiny.operator("a", 1000, -1), tiny.operator("b", 1000, 5)]
    found = outcome(tiny.session(*events), "unfinished-events")
    assert (found["outcome"], found["count"], found["share"]) == ("failed", 1, 0.5)


def test_simulated_is_said_and_takes_nothing():
    events = [tiny.launch(1, 1000), tiny.kernel(1005, 5, correlation=1)]
    answer = trust(tiny.session(*events, simulated=True), "gpu-utilisation")
    assert answer.state == "ok"
    assert answer.reasons == ("This recording was made by a simulator; no GPU was involved.",)


def test_a_selected_window_is_no_fault():
    """The window cuts launches from their kernels; the recording as a whole is sound."""
    session = tiny.session(*loop(100, 100, 100))
    part = session.select(window=TimeWindow(50_000, 60_000))
    assert checks(part) is checks(session)  # computed once
    assert not failing(part)


def test_an_unknown_figure():
    with pytest.raises(UsageError, match="there is no figure beauty"):
        trust(tiny.session(tiny.kernel(1, 1)), "beauty")


def test_every_rule_is_documented_and_every_figure_is_touched():
    ids = [rule.id for rule in RULES]
    assert len(set(ids)) == len(ids)
    for rule in RULES:
        assert rule.meaning.endswith("."), rule.id
        assert rule.remedy, rule.id
        assert rule.affects, rule.id
    assert {name for rule in RULES for name in rule.affects} == set(FIGURES)


@pytest.mark.parametrize("events", [[], [tiny.kernel(1000, 0)], [tiny.operator("op", 1000, 0)]])
def test_next_to_nothing_does_not_break_a_rule(events):
    table = checks(tiny.session(*events))
    assert set(table["id"]) == {rule.id for rule in RULES}
    for figure in FIGURES:
        trust(tiny.session(*events), figure)
