"""Too few workers: two steps of 1000 us, every share counted by hand."""

from __future__ import annotations

import pytest

from maiprof_nb import Session
from tests.findings.asking import US, finding
from tests.tiny_traces import Event, annotation, kernel, launch, python, session, step

RULE = "few-data-workers"
SINGLE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
PROCESSES = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def two_steps(loading: list[Event], wait: int) -> Session:
    """Each step waits so long, launches at once, and its kernel fills the rest but 20 us."""
    events = list(loading)
    for number, start in ((1, 1000), (2, 2000)):
        events += [
            step(number, start, 1000),
            launch(number, start + wait),
            kernel(start + wait + 10, 980 - wait, correlation=number),
        ]
    return session(*events)


def loader(name: str, wait: int) -> list[Event]:
    return [annotation(name, 1000, wait), annotation(name, 2000, wait)]


def threads(count: int, wait: int, busy: int) -> list[Event]:
    """A loop that waits in its own loader while so many threads decode for `busy` us a step."""
    events = [python("job/data.py(9): next_batch", start, wait) for start in (1000, 2000)]
    for tid in range(601, 601 + count):
        events.append(python("threading.py(1014): _bootstrap", 1000, 2000, tid=tid))
        events += [python("job/data.py(3): decode", start, busy, tid=tid) for start in (1000, 2000)]
    return events


def test_a_loader_in_the_training_thread() -> None:
    found = finding(two_steps(loader(SINGLE, 600), 600), RULE)
    assert found.outcome == "found"
    assert found.cost_ns == 2 * 600 * US  # all of the loading lies in gaps
    assert found.share == pytest.approx(0.6)
    (evidence,) = found.evidence
    # 600 us of loading fit into the other 400 us of a step only with 2 workers.
    assert (evidence["workers"], evidence["enough"]) == (0, 2)
    assert (evidence["wait_ns"], evidence["rest_ns"]) == (600 * US, 400 * US)
    assert "num_workers of the DataLoader to 2" in found.advice
    assert found.change == "1 line"


def test_two_busy_threads() -> None:
    found = finding(two_steps(threads(2, 600, 600), 600), RULE)
    assert found.outcome == "found"
    assert "2 worker threads load the data, busy 100.0 %" in found.title
    # 2 threads x 600 us of decoding / 400 us = 3.
    assert found.evidence[0]["enough"] == 3
    assert found.cost_ns == 2 * 600 * US


def test_worker_processes_that_do_not_keep_up() -> None:
    found = finding(two_steps(loader(PROCESSES, 600), 600), RULE)
    assert found.outcome == "found"
    assert "2.5 times as many" in found.title  # a step of 1000 us, 400 us without the wait
    assert found.evidence[0]["enough"] is None


@pytest.mark.parametrize(
    ("wait", "enough"),
    [(200, 1), (400, 2)],  # 2 threads x 200 us in the other 800 us; 2 x 400 us in 600 us
)
def test_enough_threads_that_do_not_work_ahead_pass(wait: int, enough: int) -> None:
    found = finding(two_steps(threads(2, wait, wait), wait), RULE)
    assert found.outcome == "passed"
    assert f"2 worker threads are enough, {enough} would keep up" in found.title


def test_threads_with_little_to_do_pass() -> None:
    found = finding(two_steps(threads(2, 600, 300), 600), RULE)
    assert found.outcome == "passed"
    assert "busy only 50.0 %" in found.title


def test_a_short_wait_passes() -> None:
    found = finding(two_steps(loader(SINGLE, 10), 10), RULE)
    assert found.outcome == "passed"
    assert "1.0 %" in found.title  # 10 us of 1000


def test_without_loading_or_steps_it_does_not_apply() -> None:
    assert finding(two_steps([], 600), RULE).outcome == "not-applicable"
    assert finding(session(launch(1, 1000), kernel(1010, 5, correlation=1)), RULE).outcome == (
        "not-applicable"
    )
