"""Overlaps that cannot be and copies of events; right counts are counted by hand here."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maiprof_nb.trust import trust
from maiprof_nb.trust.overlaps import crossings
from tests import tiny_traces as tiny
from tests.trust.asking import failing, outcome


def stream(*spans, stream=7, device=0):
    return [
        tiny.kernel(ts, dur, stream=stream, device=device, correlation=int(ts)) for ts, dur in spans
    ]


def launched(kernels):
    return [tiny.launch(k["args"]["correlation"], k["ts"] - 500, 1) for k in kernels]


def test_kernels_that_overlap_on_one_stream():
    """Programmatic dependent launch: 3 of 4 begin 2 us early; 4 x 10 us in 34 us."""
    kernels = stream((1000, 10), (1008, 10), (1016, 10), (1024, 10))
    session = tiny.session(*kernels, *launched(kernels))
    found = outcome(session, "overlapping-work")
    assert (found["outcome"], found["count"], found["share"]) == ("failed", 3, 0.75)
    assert "117.6 % of the time covered" in found["reason"]  # 40 / 34
    assert trust(session, "breakdown").state == "ok"  # unions stay exact
    assert trust(session, "phases").state == "reduced"


def test_side_by_side_on_two_streams_or_devices_is_healthy():
    kernels = [*stream((1000, 10), (1010, 10)), *stream((1001, 10), stream=8)]
    kernels += stream((1002, 10), device=1)
    assert outcome(tiny.session(*kernels), "overlapping-work")["count"] == 0


def test_one_microsecond_of_a_coarse_clock_is_rounding():
    assert outcome(tiny.session(*stream((1000, 11), (1010, 10))), "overlapping-work")["count"] == 0
    fine = tiny.session(*stream((1000, 11), (1010, 10.5)))
    assert outcome(fine, "overlapping-work")["count"] == 1


def test_host_events_that_cross():
    """pytorch#174555, perfetto#6421, #4280, janestreet/perfetto#35: not nested, slices dropped."""
    session = tiny.session(
        tiny.operator("outer", 1000, 100),
        tiny.operator("inner", 1010, 20),
        tiny.operator("crosses inner", 1020, 20),
        tiny.operator("on another thread", 1090, 50, tid=tiny.AUTOGRAD),
    )
    found = outcome(session, "host-events-cross")
    assert (found["outcome"], found["count"], found["share"]) == ("failed", 1, 0.25)
    assert trust(session, "operator-times").state == "reduced"


def test_nested_and_touching_host_events_are_healthy():
    session = tiny.session(
        tiny.operator("outer", 1000, 100),
        tiny.operator("same start", 1000, 50),
        tiny.operator("same end", 1060, 40),
        tiny.operator("next", 1100, 10),
        tiny.operator("empty", 1100, 0),
    )
    assert not failing(session)


def test_python_that_enters_a_range_crosses_it_by_nature():
    session = tiny.session(
        tiny.python("torch/autograd/profiler.py(1): __enter__", 1000, 10),
        tiny.annotation("range", 1005, 100),
        tiny.python("torch/autograd/profiler.py(2): __exit__", 1100, 10),
    )
    assert outcome(session, "host-events-cross")["outcome"] == "passed"


SPANS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 12)), min_size=1, max_size=25
)


@given(SPANS, st.integers(0, 3))
def test_crossings_are_those_of_the_definition(spans, tolerance):
    lane, start, length = (np.array(column, dtype=np.int64) for column in zip(*spans, strict=True))
    end = start + length
    wanted = [
        any(
            lane[j] == lane[i]
            and start[i] < start[j] < end[i] - tolerance
            and end[j] > end[i] + tolerance
            for j in range(len(spans))
        )
        for i in range(len(spans))
    ]
    assert crossings(lane, start, end, tolerance).tolist() == wanted


def test_exact_duplicates():
    """TraceLens and HTA see such after a merge: every event twice."""
    events = [tiny.operator(f"op{i}", 1000 + 10 * i, 5, **{"External id": i}) for i in range(10)]
    session = tiny.session(*events, *events[:3])
    found = outcome(session, "duplicates")
    assert (found["outcome"], found["count"]) == ("failed", 3)
    assert "3 operators" in found["reason"]


@pytest.mark.parametrize("difference", [{"External id": 2}, {"Sequence number": 9}])
def test_two_calls_in_one_microsecond_are_no_duplicates(difference):
    first = tiny.operator("aten::zeros", 1000, 4, **{"External id": 1})
    second = tiny.operator("aten::zeros", 1000, 4, **{"External id": 1} | difference)
    assert outcome(tiny.session(first, second), "duplicates")["count"] == 0
