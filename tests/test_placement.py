"""Places on the axis: by clock, by zone, by hand, by a stated interval."""

from __future__ import annotations

from dataclasses import replace

import pytest

from maiprof_nb import Clock, Recording, Session, TimeWindow, UsageError
from maiprof_nb.placement import BY_HAND, PART_HOURS, WHOLE_HOURS, Placement, zone_name
from maiprof_nb.tables import SCHEMAS
from tests import tiny_traces as tiny

US, S, HOUR = 1_000, 1_000_000_000, 3_600_000_000_000
BASE = 1_700_000_000_000_000_000
NO_CLOCK = Clock(None, "order of the rows", ordered_only=True)


def trace(*, seconds=3, rank=None, clock=None):
    made = tiny.recording(tiny.operator("op", 0, seconds * 1e6))
    clock = clock or Clock(BASE, "base time", 0)
    return replace(made, rank=rank, clock=clock, source=f"trace{rank}.json")


def log(*at_s, clock=NO_CLOCK, source="logs/dmon.txt"):
    rows = len(at_s)
    table = SCHEMAS["counters"].frame(
        {
            "event": range(rows),
            "ts_ns": [int(at * S) for at in at_s],
            "device": ["0"] * rows,
            "counter": ["sm"] * rows,
            "unit": ["%"] * rows,
            "value": [float(row) for row in range(rows)],
        }
    )
    return Recording(source, "metrics", "nvidia-smi-dmon", {"counters": table}, clock)


def old_snapshot(events=3):
    table = SCHEMAS["allocator_events"].frame(
        {
            "event": range(events),
            "ts_ns": range(events),
            "device": [0] * events,
            "action": ["alloc"] * events,
            "address": [1] * events,
            "size_bytes": [512] * events,
            "stream": [0] * events,
            "device_free_bytes": [None] * events,
            "stack": [None] * events,
        }
    )
    return Recording("s.pickle", "snapshot", "cuda-snapshot", {"allocator_events": table}, NO_CLOCK)


def times(session):
    return session.table("counters")["ts_ns"].tolist()


# Zones in use, from the list of time zones (IANA tz database 2025b).
@pytest.mark.parametrize(
    ("minutes", "name"),
    [
        (-570, "UTC-9:30"),
        (-210, "UTC-3:30"),
        (330, "UTC+5:30"),
        (345, "UTC+5:45"),
        (765, "UTC+12:45"),
    ],
)
def test_zones_that_are_no_whole_hour_from_utc(minutes, name):
    local = log(1, 2, clock=Clock(BASE + minutes * 60 * S, "local", 14 * HOUR))
    session = Session([trace(), local])
    assert times(session) == [S, 2 * S]
    row = session.clocks.iloc[1]
    assert name in row["origin"]
    assert row["on_axis"]
    assert row["uncertainty_ns"] == S


def test_a_whole_hour_is_preferred_to_other_zones():
    """Over 8 h many zones fit; nothing is decided by those few people live in."""
    wide = trace(seconds=8 * 3600)
    local = log(1, 2, clock=Clock(BASE + 330 * 60 * S, "local", 14 * HOUR))
    session = Session([wide, local])
    assert session.clocks["on_axis"].tolist() == [True, True]
    assert "it meets the other recordings so" in session.clocks["origin"][1]
    assert session.clocks["uncertainty_ns"][1] == 14 * HOUR  # other zones fit as well


def test_names_of_zones():
    assert [zone_name(m) for m in (0, 60, -480, 330, -570)] == [
        "UTC+0",
        "UTC+1",
        "UTC-8",
        "UTC+5:30",
        "UTC-9:30",
    ]
    assert not set(WHOLE_HOURS) & set(PART_HOURS)


def test_a_log_without_times_is_placed_by_hand():
    session = Session([trace(), log(0, 1, 2)])
    assert session.clocks["on_axis"].tolist() == [True, False]
    placed = session.placed({"dmon.txt": 5 * S}, uncertainty_ns=20)
    assert times(placed) == [5 * S, 6 * S, 7 * S]
    row = placed.clocks.iloc[1]
    assert (row["origin"], row["uncertainty_ns"], row["on_axis"]) == (BY_HAND, 20, True)
    assert session.clocks["on_axis"].tolist() == [True, False]  # the first is as it was


def test_recordings_by_position_path_or_name():
    session = Session([trace(), log(0, source="a/gpu.csv"), log(0, source="b/gpu.csv")])
    assert session.number_of(2) == session.number_of("b/gpu.csv") == 2
    with pytest.raises(UsageError, match=r"recording gpu\.csv is the name of several"):
        session.placed({"gpu.csv": 0})
    with pytest.raises(UsageError, match="recording 3 is not in this session") as error:
        session.placed({3: 0})
    assert "0: traceNone.json" in error.value.remedy


def test_an_interval_makes_times_of_an_order():
    session = Session([trace(), log(0, 1, 2)])
    assert times(session.placed(interval_s={1: 0.1})) == [0, S // 10, S // 5]
    placed = session.placed({1: S}, interval_s={1: 0.1})
    assert times(placed) == [S, S + S // 10, S + S // 5]
    again = placed.placed(interval_s={1: 0.5})
    assert times(again) == [S, S + S // 2, 2 * S]
    assert again.placements[1].origin == BY_HAND
    assert not again.recordings[1].clock.ordered_only
    assert "0.5 s apart as stated by hand" in again.recordings[1].clock.origin


@pytest.mark.parametrize("interval", [0, -1, float("nan"), 1e9])
def test_intervals_that_are_none(interval):
    with pytest.raises(UsageError, match="is no interval between samples"):
        Session([trace(), log(0, 1)]).placed(interval_s={1: interval})


def test_what_has_times_has_its_own_interval():
    timed = log(0, 1, clock=Clock(BASE, "its own", 0))
    with pytest.raises(UsageError, match="has times of its own"):
        Session([trace(), timed]).placed(interval_s={1: 0.1})


def test_events_that_are_only_numbered_are_no_nanoseconds():
    session = Session([trace(), old_snapshot()])
    with pytest.raises(UsageError, match="has no times to place"):
        session.placed({1: 0})
    placed = session.placed({1: S}, interval_s={1: 0.001})
    assert placed.table("allocator_events")["ts_ns"].tolist() == [S, S + 10**6, S + 2 * 10**6]


def test_back_to_where_its_clock_says():
    session = Session([trace(), log(1, 2, clock=Clock(BASE, "its own", 5))])
    moved = session.placed({1: 7 * S})
    assert times(moved) == [8 * S, 9 * S]
    back = moved.placed({1: None})
    assert back.placements == session.placements
    assert not back.placements[1].stated


def test_the_axis_stays_when_its_first_recording_is_moved():
    session = Session([trace(rank=0), trace(rank=1)])
    moved = session.placed({0: 2 * S})
    assert moved.epoch_ns == BASE
    assert moved.table("operators")["ts_ns"].tolist() == [2 * S, 0]
    assert moved.span == TimeWindow(0, 5 * S)


def test_among_recordings_without_clocks_one_is_the_axis():
    session = Session([log(0, 1), trace(clock=Clock(None, "states none"))])
    assert session.clocks["on_axis"].tolist() == [False, False]
    placed = session.placed({0: S})
    assert placed.clocks["on_axis"].tolist() == [True, True]
    assert "the axis that others were placed on" in placed.clocks["origin"][1]
    assert placed.placed({0: None}).clocks["on_axis"].tolist() == [False, False]


def test_an_axis_without_a_clock_is_on_no_wall_clock():
    """The log's clock no longer says when session zero was, once the log lies elsewhere."""
    session = Session([trace(clock=Clock(None, "none")), log(0, clock=Clock(BASE, "its own", 0))])
    assert session.epoch_ns == BASE
    placed = session.placed({1: S})
    assert placed.epoch_ns is None
    assert placed.placed({1: 2 * S}).epoch_ns is None
    assert placed.placed({1: None}).axis == session.axis
    moved = session.placed({0: S})  # the trace to the log
    assert moved.epoch_ns == BASE
    assert moved.clocks["on_axis"].all()


def test_a_selection_stays_selected():
    session = Session([trace(rank=0), log(0, 1, 2)])
    part = session.select(ranks=[0], window=TimeWindow(0, 2 * S)).placed({1: S})
    assert part.window == TimeWindow(0, 2 * S)
    assert part.selected_ranks == (0,)
    assert times(part) == [S]
    assert times(part.whole) == [S, 2 * S, 3 * S]


def test_a_placement_with_its_reason():
    said = Placement(S, "the operator's diary", 3 * S)
    placed = Session([trace(), log(0)]).placed({1: said})
    assert placed.placements[1] == replace(said, stated=True)


def test_sql_sees_the_places():
    pytest.importorskip("duckdb")
    placed = Session([trace(), log(0, 1)]).placed({1: 5 * S})
    assert placed.sql("select max(ts_ns) as last from counters")["last"].tolist() == [6 * S]
