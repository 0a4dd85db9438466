"""Collections during a gap of 100 us."""

from __future__ import annotations

import pytest

from maiprof_nb import Session
from tests.findings.asking import US, finding
from tests.tiny_traces import Event, annotation, kernel, launch, python, session, step

RULE = "garbage-collection"


def gap_with(*events: Event) -> Session:
    """Device work from 1010 to 1100 and from 1200 to 1250, idle between."""
    return session(
        launch(1, 1000), kernel(1010, 90, correlation=1), *events,
        launch(2, 1195), kernel(1200, 50, correlation=2),
    )  # fmt: skip


@pytest.mark.parametrize(
    "collection",
    [
        annotation("Python GC", 1090, 60),
        python("<built-in function collect>", 1090, 60),
        annotation("gc", 1090, 60, tid=777),  # another thread's collection stops this one, too
    ],
)
def test_time_of_a_collection_inside_the_gap(collection: Event) -> None:
    found = finding(gap_with(collection), RULE)
    assert found.outcome == "found"
    assert found.cost_ns == 50 * US  # from 1100 on the device is idle
    assert found.share == pytest.approx(50 / 240)
    assert found.evidence[0]["dur_ns"] == 60 * US
    assert found.change == "2 lines"


def test_nested_events_of_one_collection_count_once() -> None:
    both = (python("job/tidy.py(3): collect", 1110, 52), python("gc.collect", 1110, 50))
    found = finding(gap_with(*both, python("<built-in function collect>", 1111, 48)), RULE)
    assert found.cost_ns == 50 * US
    assert "1 garbage collection took" in found.title


def test_a_collection_while_the_device_works_passes() -> None:
    found = finding(gap_with(annotation("Python GC", 1020, 60)), RULE)
    assert found.outcome == "passed"


def test_without_recorded_collections_it_does_not_apply() -> None:
    merely_so_named = (
        python("train.py(3): garbage_can", 1110, 50),
        python("job/garbage_collection.py(3): report", 1111, 40),
        python("gc/tables.py(3): collect", 1112, 30),
    )
    found = finding(gap_with(*merely_so_named), RULE)
    assert found.outcome == "not-applicable"
    assert "record_python_gc_info" in found.reason


def test_without_a_device_the_loop_itself_stands_still() -> None:
    both = [annotation("Python GC", 1100, 60, tid=tid) for tid in (500, 501)]
    found = finding(session(step(1, 1000, 400), *both), RULE)
    assert found.cost_ns == 60 * US  # at one time
    assert found.share == pytest.approx(0.15)
    assert "with the loop stopped" in found.title
