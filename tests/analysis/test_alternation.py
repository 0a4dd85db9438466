"""Long gaps of a loop of 40 steps of 100 us, each with gaps as written down."""

from __future__ import annotations

import pandas as pd
import pytest

from maiprof_nb import NotAnswerableError, Session
from maiprof_nb.analysis.alternation import alternation
from maiprof_nb.findings import utilisation_verdict
from tests.shipped_samples import loaded, truth
from tests.tiny_traces import kernel, operator, python, session, step


def loop(idle: dict[int, list[int]], *, usual: tuple[int, ...] = (2,), epoch: int = 0) -> Session:
    """Step n is idle for `idle[n]` (us; `usual` if not named), 10 us of work after each gap."""
    events, now = [], 1000.0
    for number in range(40):
        begin = now
        for gap in idle.get(number, usual):
            events.append(kernel(now + gap, 10))
            now += gap + 10
        work = 100 - 10 * len(idle.get(number, usual))
        events += [kernel(now, work), step(number, begin, now + work - begin)]
        if epoch and number % epoch == 0:
            events.append(python("train.py(3): train_epoch", begin, epoch * 50))
        now += work
    return session(*events)


def row(trace: Session) -> pd.Series:
    (only,) = alternation(trace).to_dict("records")
    return pd.Series(only)


READS = {9: [300], 19: [310], 29: [320], 39: [330]}


def test_gaps_that_come_every_ten_steps() -> None:
    found = row(loop(READS))
    assert (found["gaps"], found["long_gaps"]) == (40, 4)
    assert (found["longest_ns"], found["typical_ns"]) == (330_000, 315_000)
    assert found["limit_ns"] == 10_200  # a tenth of the median step, 102 us
    assert found["long_share"] == pytest.approx(1260 / (1260 + 36 * 2))
    assert found["every_steps"] == 10
    assert pd.isna(found["every_epochs"])


def test_epochs_where_they_were_recorded() -> None:
    assert row(loop(READS, epoch=5))["every_epochs"] == 2


def test_gaps_of_every_step() -> None:
    found = row(loop({7: []}, usual=(30, 20)))
    assert (found["every_steps"], found["a_step"], found["long_gaps"]) == (1, 2, 78)


def test_gaps_at_no_one_distance() -> None:
    found = row(loop({3: [300], 5: [300], 30: [300]}))
    assert found["long_gaps"] == 3
    assert pd.isna(found["every_steps"])


def test_no_long_gap() -> None:
    found = row(loop({}))
    assert (found["long_gaps"], found["long_share"]) == (0, 0)
    assert pd.isna(found["typical_ns"])


def test_without_device_work_there_is_no_answer() -> None:
    with pytest.raises(NotAnswerableError):
        alternation(session(operator("aten::mm", 1000, 10)))


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        (loop(READS, epoch=5), "94.6 % of the idle time is 4 gaps of about 315 µs, every 2 epochs"),
        (loop(READS), "4 gaps of about 315 µs, every 10 steps. The other 36 are shorter than"),
        (
            loop({7: []}, usual=(30, 20)),
            "100.0 % of the idle time is 78 gaps of about 25.0 µs, 2",
        ),
        (loop({3: [300]}), "is 1 gap of 300 µs. The other 39"),
        (loop({}), "40 gaps, the longest 2.00 µs."),
    ],
)
def test_in_words(trace: Session, said: str) -> None:
    assert said in utilisation_verdict(trace).figure


@pytest.mark.xdist_group("simulated samples")
@pytest.mark.parametrize("name", ["before", "workers", "batch", "amp", "optimizer"])
def test_the_case_study_waits_in_every_step_and_longer_after_ten_epochs(name: str) -> None:
    known = truth(name)
    reads, steps = known["sub_dataset_reads"], known["settings"]["steps_per_epoch"]
    figure = utilisation_verdict(loaded(name)).figure
    assert f"is {len(known['steps'])} gaps of about" in figure
    assert f", one a step; every 10 epochs ({10 * steps} steps) it is" in figure
    assert reads[1] - reads[0] == 10 * steps
