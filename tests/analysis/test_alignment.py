"""Offsets from the course of utilisation.

Right values: the shift that the test itself made, of simulated samples, whose clocks agree.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from maiprof_nb import Clock, NotAnswerableError, Recording, Session, TimeWindow, UsageError
from maiprof_nb.analysis.alignment import aligned, estimate_offset
from maiprof_nb.tables import SCHEMAS
from tests import shipped_samples
from tests import tiny_traces as tiny

S = 1_000_000_000
HOUR = 3600 * S
INTERVAL = S // 2  # of the simulated samplers


def changed(session, name, make):
    """The session with one recording made anew."""
    number = session.number_of(name)
    recordings = list(session.recordings)
    recordings[number] = make(recordings[number])
    return Session(recordings)


def shifted(session, name, by_ns):
    def later(recording):
        clock = recording.clock
        return replace(recording, clock=replace(clock, epoch_ns=clock.epoch_ns + by_ns))

    return changed(session, name, later)


def with_values(session, name, counter, make):
    """One counter only, with other values."""

    def other(recording):
        rows = recording.table("counters")
        rows = rows[rows["counter"] == counter]
        rows = rows.assign(value=make(rows["value"].to_numpy()))
        return replace(recording, tables={"counters": rows})

    return changed(session, name, other)


def without_clock(session, name):
    def lose(recording):
        return replace(recording, clock=Clock(None, "no time stamps", ordered_only=True))

    return changed(session, name, lose)


def offset(session, name):
    return session.placements[session.number_of(name)].offset_ns


@pytest.mark.parametrize("scenario", ["before", "workers", "batch", "amp", "optimizer"])
@pytest.mark.parametrize(
    ("name", "by_s"),
    [
        ("gpu.csv", 2 * 3600 + 13.4),  # local time of UTC+2, and a clock that is fast
        ("gpu.csv", -8 * 3600 - 7.123),
        ("gpu.csv", 5.75 * 3600 + 0.9),  # Kathmandu
        ("dcgm.prom", -31.05),
    ],
)
def test_a_known_shift_is_found_within_half_an_interval(scenario, name, by_s):
    right = shipped_samples.loaded(scenario)
    wrong = shifted(right, name, int(by_s * S))
    found = estimate_offset(wrong, name)
    assert found.refused is None
    assert abs(found.offset_ns - offset(right, name)) <= INTERVAL // 2 == found.uncertainty_ns
    assert found.score > 0.95
    assert found.rival_score < found.score - 0.01
    session = aligned(wrong, name)
    row = session.clocks.iloc[session.number_of(name)]
    assert row["origin"].startswith(f"estimated by {found.counter} against device-busy")
    assert row["uncertainty_ns"] == INTERVAL // 2
    assert offset(session, name) == found.offset_ns


def test_a_whole_zone_is_not_taken_for_the_right_place():
    """The rule of whole hours alone leaves the 13.4 s."""
    right = shipped_samples.loaded("before")
    wrong = shifted(right, "gpu.csv", int((2 * 3600 + 13.4) * S))
    assert offset(wrong, "gpu.csv") - offset(right, "gpu.csv") == int(13.4 * S)


def test_a_log_without_a_clock_is_found_anywhere():
    right = shipped_samples.loaded("before")
    lost = without_clock(right, "gpu.csv")
    found = estimate_offset(lost, "gpu.csv")
    assert found.refused is None
    assert abs(found.offset_ns - offset(right, "gpu.csv")) <= INTERVAL // 2
    assert aligned(lost, "gpu.csv").clocks["on_axis"].all()


def test_a_log_with_a_stated_interval():
    """Rows of half a second, read as one a second: wrong by a factor, right once it is stated."""
    right = shipped_samples.loaded("before")
    lost = changed(
        without_clock(right, "gpu.csv"),
        "gpu.csv",
        lambda r: replace(
            r,
            tables={"counters": r.table("counters").assign(ts_ns=r.table("counters")["ts_ns"] * 2)},
        ),
    )
    assert estimate_offset(lost, "gpu.csv").refused is not None
    stated = lost.placed(interval_s={"gpu.csv": 0.5})
    found = estimate_offset(stated, "gpu.csv")
    assert found.refused is None
    assert abs(found.offset_ns - offset(right, "gpu.csv")) <= INTERVAL // 2


def test_a_trace_without_a_clock_is_moved_to_the_log():
    sample = shipped_samples.loaded("before")
    keep = [r for r in sample.recordings if r.kind == "trace" or r.source.endswith("dcgm.prom")]
    right = Session(keep)
    lost = changed(right, keep[1].source, lambda r: replace(r, clock=Clock(None, "none")))
    found = estimate_offset(lost, 1)
    assert found.refused is None
    apart = right.placements[1].offset_ns - right.placements[0].offset_ns
    assert abs(found.offset_ns - lost.placements[0].offset_ns - apart) <= INTERVAL // 2
    assert "align the trace instead" in estimate_offset(lost, 0).refused


def test_power_is_the_last_resort():
    right = shipped_samples.loaded("before")
    wrong = with_values(shifted(right, "gpu.csv", 20 * S), "gpu.csv", "power.draw", lambda v: v)
    found = estimate_offset(wrong, "gpu.csv")
    assert found.counter == "power.draw"
    assert found.refused is None
    assert abs(found.offset_ns - offset(right, "gpu.csv")) <= INTERVAL


def test_a_window_of_equal_steps_is_refused_and_the_rival_named():
    """20 cycles of 3 s busy, 3 s idle: each cycle later fits as well. By construction."""
    trace = tiny.recording(
        *(tiny.kernel(1000 + 6e6 * n, 3e6) for n in range(20)), baseTimeNanoseconds=10**18
    )
    at = np.arange(0, 118 * S, S)
    busy = ((at - S // 2) % (6 * S) < 3 * S) * 90.0
    found = estimate_offset(Session([trace, _log(at, busy, 10**18 + 17 * S)]), "made.csv")
    assert "the course repeats itself" in found.refused
    assert found.rival_score > 0.9
    assert (found.rival_offset_ns - found.offset_ns) % (6 * S) < S // 4 or (
        found.offset_ns - found.rival_offset_ns
    ) % (6 * S) < S // 4


def test_one_landmark_in_equal_steps_is_enough():
    """As above, with one cycle left out of both."""
    kept = [n for n in range(20) if n != 8]
    trace = tiny.recording(
        *(tiny.kernel(1000 + 6e6 * n, 3e6) for n in kept), baseTimeNanoseconds=10**18
    )
    at = np.arange(0, 118 * S, S)
    busy = (((at - S // 2) % (6 * S) < 3 * S) & ((at - S // 2) // (6 * S) != 8)) * 90.0
    found = estimate_offset(Session([trace, _log(at, busy, 10**18 + 17 * S)]), "made.csv")
    assert found.refused is None


def test_steps_between_reloads_are_too_alike():
    sample = shipped_samples.loaded("workers")
    part = sample.select(window=TimeWindow(3 * S, 9 * S))
    assert estimate_offset(part, "gpu.csv").refused is not None


@pytest.mark.parametrize("scenario", ["before", "workers", "amp"])
@pytest.mark.parametrize("kind", ["white", "wandering", "permuted", "blocks"])
def test_noise_is_refused(scenario, kind):
    random = np.random.default_rng(20240501)
    make = {
        "white": lambda v: random.normal(size=len(v)),
        "wandering": lambda v: np.cumsum(random.normal(size=len(v))),
        "permuted": random.permutation,
        "blocks": lambda v: np.repeat(random.integers(0, 2, len(v)), 4)[: len(v)].astype(float),
    }[kind]
    for _ in range(5):
        session = with_values(shipped_samples.loaded(scenario), "gpu.csv", "utilization.gpu", make)
        found = estimate_offset(session, "gpu.csv")
        assert found.refused is not None
        with pytest.raises(NotAnswerableError, match="no offset can be estimated"):
            aligned(session, "gpu.csv")


def test_even_use_is_refused():
    trace = tiny.recording(tiny.kernel(1000, 60e6), baseTimeNanoseconds=10**18)
    at = np.arange(0, 60 * S, S)
    noisy = 99 + np.random.default_rng(1).integers(0, 2, len(at)).astype(float)
    found = estimate_offset(Session([trace, _log(at, noisy, 10**18)]), "made.csv")
    assert "use is even throughout" in found.refused


def test_too_few_samples_are_refused():
    """The leak's trace lasts 2.7 s, at a sample every half second."""
    found = estimate_offset(shipped_samples.loaded("leak"), "gpu.csv")
    assert "too few samples lie within what the trace recorded: 5" in found.refused


def test_what_does_not_overlap_is_refused():
    far = shifted(shipped_samples.loaded("before"), "dcgm.prom", 3 * HOUR)
    assert "do not overlap" in estimate_offset(far, "dcgm.prom").refused
    near = estimate_offset(far, "dcgm.prom", search_s=4 * 3600)
    assert near.refused is None


def test_without_a_partner():
    sample = shipped_samples.loaded("before")
    logs = Session([r for r in sample.recordings if r.kind == "metrics"])
    assert "no trace here holds device work" in estimate_offset(logs, 0).refused
    trace = Session([r for r in sample.recordings if r.kind == "trace"])
    assert "no log of utilisation" in estimate_offset(trace, 0).refused
    with pytest.raises(UsageError, match="a snapshot has no course"):
        estimate_offset(sample, "memory.pickle.gz")
    with pytest.raises(UsageError, match="is not in this session"):
        estimate_offset(sample, "other.csv")


@pytest.mark.parametrize(
    ("at_s", "values", "reason"),
    [
        (np.append(np.arange(50.0), 1e7), np.arange(51.0) % 7, "too long to look everywhere"),
        (np.arange(60.0), np.where(np.arange(60) % 7, 1e308, -1e308), "no utilisation or power"),
        (np.zeros(60), np.arange(60.0), "no utilisation or power"),
        (np.arange(60) * 1e-9, np.arange(60.0) % 7, "too few samples"),
        (np.zeros(0), np.zeros(0), "no utilisation or power"),
        (np.array([0, 2e9, 4e9]), np.arange(3.0), "too few samples"),
    ],
)
def test_absurd_logs_are_refused_in_words(at_s, values, reason):
    sample = shipped_samples.loaded("before")
    trace = next(r for r in sample.recordings if r.kind == "trace")
    log = replace(_log((at_s * S).astype(np.int64), values, None), clock=Clock(None, "order"))
    assert reason in estimate_offset(Session([trace, log]), 1).refused


def test_many_samples_are_averaged():
    """100 samples a second of what the trace itself says, and 14 h of another job before."""
    random = np.random.default_rng(3)
    lengths = random.integers(1, 7, 60).cumsum()
    kernels = [
        tiny.kernel(1000 + int(a) * 1e6, int(b - a) * 1e6)
        for a, b in zip(lengths[::2], lengths[1::2], strict=True)
    ]
    trace = tiny.recording(*kernels, baseTimeNanoseconds=10**18)
    on = np.zeros(int(lengths[-1] - lengths[0]) * 100)
    for a, b in zip(lengths[::2], lengths[1::2], strict=True):
        on[(a - lengths[0]) * 100 : (b - lengths[0]) * 100] = 90
    before = random.integers(0, 90, 20_000).repeat(50).astype(float)
    at = np.arange(len(before) + len(on)) * (S // 100)
    log = replace(_log(at, np.append(before, on), None), clock=Clock(None, "order"))
    found = estimate_offset(Session([trace, log]), 1)
    assert found.refused is None
    assert abs(found.offset_ns + len(before) * (S // 100)) <= found.uncertainty_ns < S // 2


def test_devices_that_disagree():
    """Two devices of one log, one of them 9 s late: no one offset is right for both."""
    random = np.random.default_rng(7)
    lengths = random.integers(1, 7, 30)
    edges = np.cumsum(lengths)
    kernels = [
        tiny.kernel(1000 + int(edges[i]) * 1e6, int(lengths[i + 1]) * 1e6, device=device)
        for i in range(0, 28, 2)
        for device in (0, 1)
    ]
    trace = tiny.recording(*kernels, baseTimeNanoseconds=10**18)
    at = np.arange(0, int(edges[-1]) * S, S)
    on = np.zeros(len(at))
    for i in range(0, 28, 2):
        on[edges[i] + 1 - edges[0] : edges[i + 1] + 1 - edges[0]] = 95.0
    first = _log(at, on, 10**18)
    second = _log(at, np.roll(on, 9), 10**18).table("counters")
    rows = first.table("counters").assign(device="0")
    both = pd.concat([rows, second.assign(device="1")], ignore_index=True)
    both = both.astype(dict.fromkeys(("device", "counter", "unit"), "category"))
    session = Session([trace, replace(first, tables={"counters": both})])
    assert "devices disagree" in estimate_offset(session, "made.csv").refused


def test_ranks_share_no_exact_clock():
    """pytorch#128292, attention-gym#487, tokenspeed#662: clocks of hosts differ by 100s of us.

    The table of clocks says what each trace's own base time claims, and no more; the trust rule
    `rank-clocks` measures the rest from the ends of collectives.
    """
    session = tiny.ranks([tiny.operator("a", 1, 1)], [tiny.operator("b", 1, 1)])
    assert session.clocks["origin"].str.contains("base time").all()
    assert session.clocks["uncertainty_ns"].tolist() == [0, 0]


def _log(at_ns, values, epoch_ns):
    table = SCHEMAS["counters"].frame(
        {
            "event": np.arange(len(at_ns)),
            "ts_ns": at_ns,
            "device": ["0"] * len(at_ns),
            "counter": ["sm"] * len(at_ns),
            "unit": ["%"] * len(at_ns),
            "value": values,
        }
    )
    clock = Clock(epoch_ns, "made", S)
    return Recording("made.csv", "metrics", "made", {"counters": table}, clock)
