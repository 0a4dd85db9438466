"""Local stamps and the zone the caller states. Right values: Python's own zoneinfo, and by hand.

Berlin 2025: clocks go from 02:00 to 03:00 on 30 March (01:00 UTC) and from 03:00 back to 02:00
on 26 October (01:00 UTC).
"""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime, timedelta

import pytest

import maiprof_nb
from maiprof_nb import UsageError
from maiprof_nb.loading import zones

HEADER = "timestamp, index, utilization.gpu [%]\n"
S = 1_000_000_000


def smi(folder, stamps, *, gpus=1, name="gpu.csv"):
    rows = [f"{stamp}.000, {gpu}, {i} %\n" for i, stamp in enumerate(stamps) for gpu in range(gpus)]
    path = folder / name
    path.write_text(HEADER + "".join(rows))
    return path


def utc(session):
    epoch = session.recordings[0].clock.epoch_ns
    found = session.recordings[0].table("counters")
    found = found[found["device"] == found["device"].iloc[0]]
    return [
        datetime.fromtimestamp((epoch + ns) // S, UTC).strftime("%H:%M") for ns in found["ts_ns"]
    ]


def codes(session):
    return {note.code: note.count for _, note in session.notes if note.code.startswith("zone")}


@pytest.mark.parametrize(
    ("zone", "hour"),
    [("Europe/Berlin", 10), ("America/New_York", 16), ("Asia/Kolkata", 6), ("UTC", 12)],
)
def test_a_zone_by_name(tmp_path, zone, hour):
    session = maiprof_nb.load(smi(tmp_path, ["2025/07/01 12:00:00"]), zone=zone)
    found = datetime.fromtimestamp(session.epoch_ns // S, UTC)
    assert found == datetime(2025, 7, 1, 12, tzinfo=zoneinfo.ZoneInfo(zone))
    assert found.hour == hour
    assert f"local time of {zone} as stated" in session.clocks["origin"][0]
    assert session.clocks["uncertainty_ns"][0] == S
    assert codes(session) == {}


@pytest.mark.parametrize(
    ("zone", "minutes"), [("+02:00", 120), ("-0930", -570), ("UTC+5:45", 345), ("+1", 60), ("Z", 0)]
)
def test_a_zone_by_its_distance(tmp_path, zone, minutes):
    session = maiprof_nb.load(smi(tmp_path, ["2025/07/01 12:00:00"]), zone=zone)
    found = datetime.fromtimestamp(session.epoch_ns // S, UTC)
    assert found == datetime(2025, 7, 1, 12, tzinfo=UTC) - timedelta(minutes=minutes)


@pytest.mark.parametrize("gpus", [1, 2])
def test_the_hour_that_autumn_has_twice(tmp_path, gpus):
    stamps = [f"2025/10/26 {t}:00" for t in ("01:30", "02:00", "02:30", "02:00", "02:30", "03:00")]
    session = maiprof_nb.load(smi(tmp_path, stamps, gpus=gpus), zone="Europe/Berlin")
    assert utc(session) == ["23:30", "00:00", "00:30", "01:00", "01:30", "02:00"]
    assert codes(session) == {"zone-hour-twice": 4 * gpus}


def test_a_log_that_begins_in_the_second_pass(tmp_path):
    """02:50 -> 03:00 is ten minutes only if 02:50 was the second of two."""
    stamps = [f"2025/10/26 {t}:00" for t in ("02:40", "02:50", "03:00")]
    assert utc(maiprof_nb.load(smi(tmp_path, stamps), zone="Europe/Berlin")) == [
        "01:40",
        "01:50",
        "02:00",
    ]


def test_a_log_that_ends_in_the_first_pass(tmp_path):
    stamps = [f"2025/10/26 {t}:00" for t in ("01:50", "02:10")]
    session = maiprof_nb.load(smi(tmp_path, stamps), zone="Europe/Berlin")
    assert utc(session) == ["23:50", "00:10"]
    assert session.clocks["uncertainty_ns"][0] == S


def test_a_log_within_the_hour_is_not_decided(tmp_path):
    session = maiprof_nb.load(
        smi(tmp_path, ["2025/10/26 02:10:00", "2025/10/26 02:20:00"]), zone="Europe/Berlin"
    )
    assert codes(session) == {"zone-hour-undecided": 2}
    assert session.clocks["uncertainty_ns"][0] == 3600 * S
    assert "hour that it has twice" in session.clocks["origin"][0]


def test_the_hour_that_spring_leaves_out(tmp_path):
    """As if clocks had not been set yet: one reading a quarter of an hour stays that."""
    stamps = [f"2025/03/30 {t}:00" for t in ("01:45", "02:00", "02:15", "03:30")]
    session = maiprof_nb.load(smi(tmp_path, stamps), zone="Europe/Berlin")
    assert utc(session) == ["00:45", "01:00", "01:15", "01:30"]
    assert codes(session) == {"zone-hour-skipped": 2}


def test_half_an_hour_set_back(tmp_path):
    """Lord Howe Island, 6 April 2025: 02:00 (UTC+11) -> 01:30 (UTC+10:30)."""
    stamps = [f"2025/04/06 {t}:00" for t in ("01:15", "01:45", "01:35", "02:05")]
    session = maiprof_nb.load(smi(tmp_path, stamps), zone="Australia/Lord_Howe")
    assert utc(session) == ["14:15", "14:45", "15:05", "15:35"]


def test_every_sample_of_a_year_as_python_converts_it(tmp_path):
    zone = zoneinfo.ZoneInfo("America/New_York")
    moments = [datetime(2025, 1, 1, tzinfo=UTC) + timedelta(hours=7 * n) for n in range(1200)]
    local = [moment.astimezone(zone).strftime("%Y/%m/%d %H:%M:%S") for moment in moments]
    session = maiprof_nb.load(smi(tmp_path, local), zone="America/New_York")
    found = session.recordings[0].table("counters")["ts_ns"] + session.recordings[0].clock.epoch_ns
    assert (found // S).tolist() == [round(moment.timestamp()) for moment in moments]


@pytest.mark.parametrize(
    "name", ["Europe/Berlim", "", "../../etc/passwd", "/etc/passwd", "Europe", "+25:00", "x" * 999]
)
def test_zones_that_are_none(tmp_path, name):
    path = smi(tmp_path, ["2025/07/01 12:00:00"])
    with pytest.raises(UsageError, match="there is no time zone") as error:
        zones.zone_of(name)
    assert "+02:00" in error.value.remedy
    if name:
        with pytest.raises(UsageError):
            maiprof_nb.load(path, zone=name)


def test_near_names_are_offered():
    with pytest.raises(UsageError) as error:
        zones.zone_of("Europe/Berlim")
    assert "Did you mean Europe/Berlin" in error.value.remedy


def test_a_system_without_time_zones(monkeypatch):
    def none(name):
        raise zoneinfo.ZoneInfoNotFoundError(name)

    monkeypatch.setattr(zones.zoneinfo, "ZoneInfo", none)
    monkeypatch.setattr(zones.zoneinfo, "available_timezones", set)
    with pytest.raises(UsageError) as error:
        zones.zone_of("Europe/Berlin")
    assert "pip install tzdata" in error.value.remedy
    assert zones.zone_of("+02:00").utcoffset(None) == timedelta(hours=2)


def test_sources_that_state_their_zone_are_left_alone(tmp_path):
    path = tmp_path / "use.csv"
    path.write_text("time,cpu_percent\n2025-07-01T12:00:00+02:00,1\n2025-07-01T12:00:01+02:00,2\n")
    stated, plain = maiprof_nb.load(path, zone="Asia/Tokyo"), maiprof_nb.load(path)
    assert stated.epoch_ns == plain.epoch_ns
