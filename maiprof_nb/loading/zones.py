"""Local time stamps -> UTC, sample by sample, by the rules of a stated time zone."""

from __future__ import annotations

import difflib
import re
import zoneinfo
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.errors import UsageError
from maiprof_nb.placement import HOUR_NS, zone_unstated
from maiprof_nb.recording import Note, Recording
from maiprof_nb.timebase import NS_PER_S, Clock

_OFFSET = re.compile(
    r"(?:UTC|GMT)?(?P<sign>[+-])(?P<hours>\d\d?)(?::?(?P<minutes>\d\d))?", re.ASCII
)
_QUARTER_NS = 900 * NS_PER_S  # zones change on a quarter of an hour
_DAY_NS = 24 * HOUR_NS
_STEP_BACK_NS = 60 * NS_PER_S  # clocks that are set right step back by less

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def zone_of(name: str) -> tzinfo:
    """A time zone by its name (``Europe/Berlin``) or distance from UTC (``+02:00``).

    Raises
    ------
    UsageError
        If there is none of that name, or this system has no list of time zones.
    """
    if name.upper() in {"UTC", "Z", "GMT"}:
        return UTC
    stated = _OFFSET.fullmatch(name)
    if stated:
        minutes = int(stated["hours"]) * 60 + int(stated["minutes"] or 0)
        if minutes <= 14 * 60:
            return timezone(timedelta(minutes=-minutes if stated["sign"] == "-" else minutes))
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as problem:
        raise UsageError(f"there is no time zone {name[:60]!r}", remedy=_remedy(name)) from problem


def in_zone(recording: Recording, name: str) -> Recording:
    """A recording whose time stamps are local time of a zone, on the UTC axis.

    A recording with a zone of its own, or without wall-clock time, is given back as it is.

    Parameters
    ----------
    recording : Recording
        Anything.
    name : str
        The zone that its stamps are in.

    Returns
    -------
    Recording
        With one time a sample. The hour that an autumn repeats is told apart by the order of
        the samples; stamps in the hour that a spring leaves out go on as if it had not been
        left out. Both are noted with their counts.

    Raises
    ------
    UsageError
        If there is no such zone.
    """
    zone = zone_of(name)
    samples = recording.tables.get("counters")
    if not zone_unstated(recording.clock) or samples is None or recording.clock.epoch_ns is None:
        return recording
    wall = samples["ts_ns"].to_numpy(np.int64) + recording.clock.epoch_ns
    utc, repeated, undecided, skipped = _utc(wall, _series(samples), zone)
    zero_ns = int(utc.min()) if len(utc) else recording.clock.epoch_ns
    clock = Clock(
        zero_ns,
        f"local time of {name} as stated"
        + (", in an hour that it has twice" if undecided.any() else ""),
        HOUR_NS if undecided.any() else NS_PER_S,
    )
    return replace(
        recording,
        tables={**recording.tables, "counters": samples.assign(ts_ns=utc - zero_ns)},
        clock=clock,
        notes=(*recording.notes, *_notes(name, repeated, undecided, skipped)),
        meta={**recording.meta, "zone": name},
        known_span=None,
    )


def _utc(wall: Ints, series: Ints, zone: tzinfo) -> tuple[Ints, Flags, Flags, Flags]:
    """UTC of local times; where those exist twice, exist twice with nothing to tell, or not."""
    before, after = _offset(wall - _DAY_NS, zone), _offset(wall + _DAY_NS, zone)
    early, late = wall - before, wall - after
    early_holds, late_holds = _offset(early, zone) == before, _offset(late, zone) == after
    repeated = early_holds & late_holds & (before != after)
    second, undecided = _second_pass(wall, repeated, series)
    # a stamp that does not exist keeps the offset before the change: spacing stays
    take_late = np.where(repeated, second, late_holds & ~early_holds)
    return np.where(take_late, late, early), repeated, undecided, ~early_holds & ~late_holds


def _offset(utc_ns: Ints, zone: tzinfo) -> Ints:
    """Distance of the zone from UTC at moments of UTC, in ns."""
    quarters, which = np.unique(utc_ns // _QUARTER_NS, return_inverse=True)
    found = [
        round(
            (datetime.fromtimestamp(quarter * 900, zone).utcoffset() or timedelta()).total_seconds()
        )
        for quarter in quarters.tolist()
    ]
    return np.array(found, dtype=np.int64)[which] * NS_PER_S


def _second_pass(wall: Ints, repeated: Flags, series: Ints) -> tuple[Flags, Flags]:
    """Which stamps of a repeated hour belong to its second pass, by the order of each series."""
    second, undecided = np.zeros(len(wall), np.bool_), np.zeros(len(wall), np.bool_)
    if not repeated.any():
        return second, undecided
    order = np.argsort(series, kind="stable")
    at, of, twice = wall[order], series[order], repeated[order]
    same = np.concatenate(([False], of[1:] == of[:-1]))
    starts = np.flatnonzero(twice & ~(same & np.concatenate(([False], twice[:-1]))))
    ends = np.flatnonzero(twice & ~np.concatenate(((same[1:] & twice[1:]), [False]))) + 1
    back = np.concatenate(([False], np.diff(at) < -_STEP_BACK_NS)) & same & twice
    jumps = np.cumsum(back)
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):  # few: one an autumn
        rows = order[start:end]
        if back[start + 1 : end].any():
            second[rows] = jumps[start:end] > jumps[start]
            continue
        entered = bool(same[start])
        left = end < len(at) and bool(same[end])
        second[rows] = left and not entered
        undecided[rows] = left == entered
    return second, undecided


def _series(samples: pd.DataFrame) -> Ints:
    by = samples.groupby(["device", "counter"], observed=True, dropna=False, sort=False)
    return by.ngroup().to_numpy(np.int64)


def _notes(name: str, repeated: Flags, undecided: Flags, skipped: Flags) -> list[Note]:
    counts = [
        (
            "zone-hour-twice",
            repeated & ~undecided,
            f"Samples lie in an hour that {name} has twice, when clocks are set back; which of the "
            "two follows from the order of the samples.",
        ),
        (
            "zone-hour-undecided",
            undecided,
            f"Samples lie in an hour that {name} has twice, and nothing before or after tells "
            "which of the two; the first was taken.",
        ),
        (
            "zone-hour-skipped",
            skipped,
            f"Samples lie in an hour that {name} leaves out, when clocks are set forward; they "
            "were read as if it had not been.",
        ),
    ]
    return [Note(code, text, int(at.sum())) for code, at, text in counts if at.any()]


def _remedy(name: str) -> str:
    known = zoneinfo.available_timezones()
    if not known:
        return (
            "This system has no list of time zones: pip install tzdata, or state the distance "
            'from UTC, e.g. zone="+02:00"'
        )
    near = difflib.get_close_matches(name[:60], known, n=3)
    meant = f"Did you mean {' or '.join(near)}? " if near else ""
    return f'{meant}Names are such as "Europe/Berlin" or "+02:00"'
