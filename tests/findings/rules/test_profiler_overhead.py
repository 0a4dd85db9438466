"""How much recording cost, from counted events and the stated cost of each."""

from __future__ import annotations

import pytest

from maiprof_nb import Session
from maiprof_nb.analysis.recording_cost import LAUNCH_NS, OPERATOR_NS, PYTHON_NS
from tests.findings.asking import US, finding
from tests.tiny_traces import Event, complete, kernel, launch, operator, python, session, step

RULE = "profiler-overhead"


def one_step(*events: Event) -> Session:
    return session(step(1, 1000, 1000), *events)


def operators(count: int) -> list[Event]:
    return [operator("aten::add", 1000 + 3 * i, 2) for i in range(count)]


def test_many_operators_in_a_short_time() -> None:
    found = finding(one_step(*operators(200)), RULE)
    assert found.outcome == "found"
    assert found.cost_ns == 200 * OPERATOR_NS
    assert found.share == pytest.approx(200 * OPERATOR_NS / (1000 * US))  # 20 %
    assert found.severity == "medium"
    assert "200 000 operators" in found.title.replace("\N{NARROW NO-BREAK SPACE}", " ")
    assert found.evidence[0]["operator_cost_ns"] == OPERATOR_NS


def test_the_busiest_thread_counts_not_the_sum() -> None:
    other = [operator("aten::add", 1000 + 3 * i, 2, tid=501) for i in range(100)]
    found = finding(one_step(*operators(160), *other, launch(1, 1900)), RULE)
    assert found.cost_ns == 160 * OPERATOR_NS + LAUNCH_NS


def test_python_functions_lead_to_py_spy() -> None:
    calls = [python("job.py(1): f", 1000 + i / 2, 0.4) for i in range(1000)]
    found = finding(one_step(*calls), RULE)
    assert (found.outcome, found.severity) == ("found", "high")
    assert found.cost_ns == 1000 * PYTHON_NS
    assert "py-spy" in found.advice


def test_overhead_that_was_recorded_counts_where_it_is_more() -> None:
    flush = complete("Buffer Flush", "overhead", 1100, 400, pid=-1, tid=0)
    found = finding(one_step(*operators(10), flush), RULE)
    assert found.cost_ns == 400 * US


def test_a_handful_of_events_tells_no_rate() -> None:
    """One call of 1 us in a window of 2.5 us would be 400 000 a second."""
    calls = [python("job.py(1): f", 1000, 1), python("job.py(2): g", 1002, 0.5)]
    found = finding(session(*calls), RULE)
    assert found.outcome == "not-applicable"
    assert "only 2 host events" in found.reason


def test_few_events_pass() -> None:
    found = finding(one_step(*operators(100)), RULE)
    assert found.outcome == "passed"
    assert "10.0 %" in found.title


def test_a_busy_device_does_not_see_it() -> None:
    work = [launch(1, 1000), kernel(1005, 990, correlation=1)]
    found = finding(one_step(*operators(200), *work), RULE)
    assert found.outcome == "passed"
    assert "idle only 1.0 %" in found.title


def test_without_host_events_it_does_not_apply() -> None:
    assert finding(session(kernel(1010, 5)), RULE).outcome == "not-applicable"
