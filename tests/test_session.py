"""Recordings of one job on one axis of time, and parts of them."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from maiprof_nb import Clock, LoadError, Recording, Session, TimeWindow, UsageError
from maiprof_nb.tables import SCHEMAS
from tests import tiny_traces as tiny

US, S, HOUR = 1_000, 1_000_000_000, 3_600_000_000_000
BASE = 1_700_000_000_000_000_000


def trace(*events, rank=None, epoch=BASE):
    made = tiny.recording(*events)
    clock = Clock(epoch, "base time", 0) if epoch is not None else Clock(None, "states none", None)
    return replace(made, rank=rank, clock=clock, source=f"trace{rank}.json")


def metrics(first_s, last_s, *, epoch=BASE, uncertainty=1_000_000):
    at = [int(first_s * S), int(last_s * S)]
    table = SCHEMAS["counters"].frame(
        {
            "event": [0, 1],
            "ts_ns": at,
            "device": ["0", "0"],
            "counter": ["use", "use"],
            "unit": ["%", "%"],
            "value": [1.0, 2.0],
        }
    )
    clock = Clock(epoch, "its own time stamps", uncertainty)
    return Recording("gpu.csv", "metrics", "smi-query", {"counters": table}, clock)


def snapshot(at_ns, *, epoch=BASE, ordered=False):
    table = SCHEMAS["allocator_events"].frame(
        {
            "event": [0],
            "ts_ns": [at_ns],
            "device": [0],
            "action": ["alloc"],
            "address": [1],
            "size_bytes": [512],
            "stream": [0],
            "device_free_bytes": [None],
            "stack": [None],
        }
    )
    clock = Clock(epoch, "time_us", 1_000, ordered_only=ordered)
    return Recording("s.pickle", "snapshot", "cuda-snapshot", {"allocator_events": table}, clock)


def test_one_recording_begins_at_zero():
    session = Session([trace(tiny.operator("op", 500, 20), tiny.kernel(530, 10))])
    assert session.span == TimeWindow(0, 40 * US)
    assert session.epoch_ns == BASE
    assert session.ranks == []


def test_ranks_with_different_bases_share_one_axis():
    session = Session(
        [
            trace(tiny.operator("op", 0, 1), rank=0, epoch=BASE + 5 * US),
            trace(tiny.operator("op", 0, 1), rank=1, epoch=BASE),
        ]
    )
    assert session.epoch_ns == BASE
    found = session.table("operators").set_index("rank")["ts_ns"]
    assert found.to_dict() == {0: 5 * US, 1: 0}
    assert session.span == TimeWindow(0, 6 * US)


def test_zero_is_the_earliest_event_of_traces_and_snapshots():
    """A sampler usually begins long before; its samples then lie before zero."""
    session = Session([metrics(-3, 9), snapshot(-2 * US), trace(tiny.operator("op", 0, 4))])
    assert session.epoch_ns == BASE - 2 * US
    assert session.table("operators")["ts_ns"].tolist() == [2 * US]
    assert session.table("counters")["ts_ns"].tolist() == [-3 * S + 2 * US, 9 * S + 2 * US]
    assert session.span == TimeWindow(0, 6 * US)


def test_metrics_alone():
    session = Session([metrics(2, 5)])
    assert session.epoch_ns == BASE + 2 * S
    assert session.span == TimeWindow(0, 3 * S)


def test_a_source_without_clock_is_not_on_the_axis_beside_others():
    lone = trace(tiny.operator("op", 0, 4), epoch=None)
    assert Session([lone]).clocks["on_axis"].tolist() == [True]
    session = Session([lone, metrics(0, 9)])
    assert session.clocks["on_axis"].tolist() == [False, True]
    assert "not tied to the other clocks" in session.clocks["origin"][0]
    assert session.clocks["uncertainty_ns"].isna().tolist() == [True, False]


@pytest.mark.parametrize("zone", [-8, -3, 1, 2, 9])
def test_local_time_is_moved_by_whole_hours_onto_the_others(zone):
    """What was written as local time of UTC+zone was read as UTC."""
    local = metrics(1, 2, epoch=BASE + zone * HOUR, uncertainty=14 * HOUR)
    session = Session([trace(tiny.operator("op", 0, 3_000_000)), local])
    assert session.table("counters")["ts_ns"].tolist() == [1 * S, 2 * S]
    row = session.clocks.iloc[1]
    assert f"UTC{zone:+d}" in row["origin"]
    assert row["on_axis"]
    assert row["uncertainty_ns"] == S


def test_local_time_that_fits_as_it_is():
    session = Session(
        [trace(tiny.operator("op", 0, 3_000_000)), metrics(1, 2, uncertainty=14 * HOUR)]
    )
    assert session.table("counters")["ts_ns"].tolist() == [S, 2 * S]
    assert "meets the other recordings so" in session.clocks["origin"][1]


def test_local_time_that_fits_nowhere_or_twice_is_off_the_axis():
    job = trace(tiny.operator("op", 0, 3_000_000))
    nowhere = metrics(1800, 1801, uncertainty=14 * HOUR)
    session = Session([job, nowhere])
    assert session.clocks["on_axis"].tolist() == [True, False]
    assert "no time zone makes it meet" in session.clocks["origin"][1]
    long = trace(tiny.operator("op", 0, 3 * 3600 * 1e6))
    session = Session([long, metrics(5 * 3600, 5 * 3600 + 1, uncertainty=14 * HOUR)])
    assert session.clocks["on_axis"].tolist() == [True, False]
    assert "zone not clear" in session.clocks["origin"][1]
    assert session.span.dur_ns == 3 * HOUR


def test_two_traces_of_one_rank():
    made = trace(tiny.operator("op", 0, 1), rank=2)
    with pytest.raises(LoadError, match="two traces claim rank 2"):
        Session([made, made])
    Session([made, replace(metrics(0, 1), rank=2)])  # only traces exclude each other


def test_tables_of_all_recordings_are_one():
    session = tiny.ranks([tiny.operator("a", 1, 1)], [tiny.operator("b", 1, 1)])
    found = session.table("operators")
    assert found.columns[:2].tolist() == ["recording", "rank"]
    assert found["recording"].tolist() == [0, 1]
    assert found["rank"].tolist() == [0, 1]
    assert found["name"].tolist() == ["a", "b"]
    assert str(found["name"].dtype) == "category"
    assert session.table("operators") is found  # made once


def test_a_table_nobody_has_is_empty_with_its_columns():
    found = tiny.session(tiny.operator("a", 1, 1)).table("segments")
    assert len(found) == 0
    assert found.columns.tolist() == ["recording", "rank", *SCHEMAS["segments"].column_names]
    with pytest.raises(UsageError, match="there is no table colours"):
        Session([]).table("colours")


def test_tables_are_not_changed_by_the_session():
    made = trace(tiny.operator("op", 5, 1), tiny.kernel(2, 1))
    before = made.table("operators").copy()
    Session([made, trace(tiny.operator("op", 0, 1), rank=1, epoch=BASE - S)]).table("operators")
    pd.testing.assert_frame_equal(made.table("operators"), before)


def test_a_window_keeps_the_rows_that_overlap_it():
    """Half-open: what ends as it begins and what begins as it ends lies outside."""
    at = {"ends": (0, 10), "in": (9, 2), "point": (10, 0), "over": (5, 90), "after": (20, 5)}
    session = tiny.session(*(tiny.operator(name, 1000 + a, b) for name, (a, b) in at.items()))
    part = session.select(window=TimeWindow(10 * US, 20 * US))
    assert set(part.table("operators")["name"]) == {"in", "point", "over"}
    assert part.window == TimeWindow(10 * US, 20 * US)
    assert session.window == session.span
    assert len(session.table("operators")) == 5


def test_selections_of_a_selection():
    session = tiny.session(*(tiny.operator("op", 1000 + 10 * i, 5) for i in range(10)))
    part = session.select(window=TimeWindow(0, 50 * US)).select(window=TimeWindow(20 * US, 90 * US))
    assert part.window == TimeWindow(20 * US, 50 * US)
    assert len(part.table("operators")) == 3


def test_selected_steps():
    session = tiny.session(*(tiny.step(n, 1000 + 100 * n, 100) for n in range(5)))
    part = session.select(steps=(1, 2))
    assert part.window == TimeWindow(100 * US, 300 * US)
    assert part.table("steps")["step"].tolist() == [1, 2]
    with pytest.raises(UsageError, match="steps 7 to 9 are not in this session") as error:
        session.select(steps=(7, 9))
    assert "[0, 1, 2, 3, 4]" in error.value.remedy


def test_selected_ranks():
    session = tiny.ranks(*([tiny.operator(f"op{rank}", 1, 1)] for rank in range(3)))
    part = session.select(ranks=[2, 0])
    assert part.table("operators")["name"].tolist() == ["op0", "op2"]
    assert session.table("operators")["name"].tolist() == ["op0", "op1", "op2"]
    with pytest.raises(UsageError, match="rank 7 is not in this session"):
        session.select(ranks=[0, 7])


def test_recordings_without_a_rank_stay_when_ranks_are_selected():
    session = Session([trace(tiny.operator("op", 0, 1), rank=0), metrics(0, 1)])
    assert len(session.select(ranks=[0]).table("counters")) == 2


def test_notes_know_their_recording():
    session = Session([tiny.recording(tiny.operator("a", 1, -1)), metrics(0, 1)])
    assert next((number, note.code) for number, note in session.notes) == (0, "negative-duration")


def test_nothing():
    session = Session([])
    assert session.span == TimeWindow(0, 0)
    assert session.epoch_ns is None
    assert session.clocks.empty
    assert not session.simulated
