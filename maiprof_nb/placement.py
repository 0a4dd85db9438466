"""Where recordings lie on one axis of time: from their clocks, or because someone says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from maiprof_nb.errors import UsageError
from maiprof_nb.recording import Recording
from maiprof_nb.timebase import NS_PER_S, Clock, TimeWindow

HOUR_NS = 3600 * NS_PER_S
_MINUTE_NS = 60 * NS_PER_S
WHOLE_HOURS = tuple(sorted((60 * hour for hour in range(-12, 15)), key=abs))
PART_HOURS = (-570, -210, -150, 210, 270, 330, 345, 390, 525, 570, 630, 765, 825)
"""Zones in use, in minutes east of UTC."""

BY_HAND = "by hand"


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one recording's time zero lies on the session's axis, and why.

    Parameters
    ----------
    offset_ns : int
        Added to the recording's ``ts_ns`` to give session time.
    origin : str
        Where the alignment came from.
    uncertainty_ns : int or None
        How far off it may be; None when that cannot be stated.
    on_axis : bool
        False when the recording has an order only, or its clock could not be tied to
        the others; its views then have an axis of their own.
    stated : bool
        True when it does not follow from the clocks: placed by hand or by an estimate.
    """

    offset_ns: int
    origin: str
    uncertainty_ns: int | None
    on_axis: bool = True
    stated: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """The common axis: its zero on the wall clock, and every recording's place on it.

    Parameters
    ----------
    epoch_ns : int or None
        Wall clock (ns since 1970-01-01 UTC) at time zero; None where no source knows.
    placements : tuple of Placement
        One a recording, in their order.
    """

    epoch_ns: int | None
    placements: tuple[Placement, ...]


def axis_of(recordings: Sequence[Recording]) -> Axis:
    """The axis that follows from the recordings' own clocks."""
    known = [
        (r.clock.epoch_ns + r.span.start_ns, r.kind)
        for r in recordings
        if r.clock.epoch_ns is not None
    ]
    watched = [start for start, kind in known if kind != "metrics"]
    epoch_ns = min(watched or [start for start, _ in known], default=None)
    return Axis(epoch_ns, tuple(_placement(r, epoch_ns, recordings) for r in recordings))


def with_stated(
    axis: Axis, recordings: Sequence[Recording], stated: Mapping[int, Placement | None]
) -> Axis:
    """The axis with some recordings placed otherwise; None puts one back where it was.

    Where nothing else is on the axis, the first trace, snapshot or other recording that was
    not placed becomes it: a place is a place beside something.
    """
    by_clock = axis_of(recordings)
    placements = list(axis.placements)
    for number, wanted in stated.items():
        if wanted is not None:
            _refuse_events_as_times(recordings[number])
        placements[number] = by_clock.placements[number] if wanted is None else wanted
    moved = {number for number, placement in enumerate(placements) if placement.stated}
    others = [number for number in range(len(recordings)) if number not in moved]
    if moved and others and not any(placements[number].on_axis for number in others):
        first = min(others, key=lambda number: (recordings[number].kind == "metrics", number))
        placements[first] = replace(
            placements[first],
            origin=f"{recordings[first].clock.origin}; the axis that others were placed on",
            on_axis=True,
        )
        return Axis(None, tuple(placements))  # its zero is on no wall clock
    return Axis(axis.epoch_ns, tuple(placements)) if moved else by_clock


def zone_unstated(clock: Clock) -> bool:
    """True for wall-clock time in an unknown time zone, read as UTC."""
    return clock.epoch_ns is not None and (clock.uncertainty_ns or 0) > HOUR_NS


def spaced(recording: Recording, interval_s: float) -> Recording:
    """A recording whose rows have an order only, with one row's or sampling's time stated.

    Parameters
    ----------
    recording : Recording
        Metrics without time stamps (one sampling is one interval), or a snapshot without
        times (one event is one interval: a mean, as events are not spaced evenly).
    interval_s : float
        Seconds between them.

    Raises
    ------
    UsageError
        If the recording has times of its own, or the interval is no positive time.
    """
    before_ns = int(recording.meta.get("interval_ns", 0))
    if not (recording.clock.ordered_only or before_ns):
        raise UsageError(
            f"an interval was stated for {recording.source}, which has times of its own",
            remedy="Move it by an offset instead: session.placed({recording: offset_ns})",
        )
    if not 0 < interval_s * NS_PER_S < HOUR_NS * 24:
        raise UsageError(
            f"{interval_s} s is no interval between samples",
            remedy="State the seconds between two samplings, e.g. 0.1 for dcgmi dmon -d 100",
        )
    interval_ns = max(round(interval_s * NS_PER_S), 1)
    unit_ns = before_ns or (NS_PER_S if recording.kind == "metrics" else 1)
    origin = f"order of the rows, {interval_ns / NS_PER_S:g} s apart as stated by hand"
    return replace(
        recording,
        tables={
            name: _scaled(frame, unit_ns, interval_ns) for name, frame in recording.tables.items()
        },
        clock=Clock(None, origin),
        meta={**recording.meta, "interval_ns": interval_ns},
        known_span=None,
    )


def zone_name(minutes: int) -> str:
    """A zone by its distance from UTC: ``UTC+2``, ``UTC+5:30``."""
    hours, rest = divmod(abs(minutes), 60)
    sign = "-" if minutes < 0 else "+"
    return f"UTC{sign}{hours}:{rest:02d}" if rest else f"UTC{sign}{hours}"


def _refuse_events_as_times(recording: Recording) -> None:
    if recording.kind == "snapshot" and recording.clock.ordered_only:
        raise UsageError(
            f"{recording.source} numbers its events and has no times to place",
            remedy="State the mean time between events too, interval_s={recording: 0.0001}, or "
            "record it with a PyTorch whose snapshots have time_us",
        )


def _scaled(frame: pd.DataFrame, unit_ns: int, interval_ns: int) -> pd.DataFrame:
    names = [name for name in ("ts_ns", "dur_ns", "end_ns") if name in frame]
    return frame.assign(**{name: frame[name] // unit_ns * interval_ns for name in names})


def _placement(
    recording: Recording, epoch_ns: int | None, recordings: Sequence[Recording]
) -> Placement:
    clock = recording.clock
    if clock.epoch_ns is None or epoch_ns is None:
        alone = len(recordings) == 1
        origin = clock.origin if alone else f"{clock.origin}; not tied to the other clocks"
        return Placement(-recording.span.start_ns, origin, clock.uncertainty_ns, on_axis=alone)
    placed = Placement(clock.epoch_ns - epoch_ns, clock.origin, clock.uncertainty_ns)
    if not zone_unstated(clock):
        return placed
    return _in_some_zone(recording, placed, _sure_span(recordings, epoch_ns))


def _sure_span(recordings: Sequence[Recording], epoch_ns: int) -> TimeWindow | None:
    """First to last moment of what is on a sure clock, on the session's axis."""
    sure = [
        (r.clock.epoch_ns - epoch_ns + r.span.start_ns, r.clock.epoch_ns - epoch_ns + r.span.end_ns)
        for r in recordings
        if r.clock.epoch_ns is not None and not zone_unstated(r.clock)
    ]
    if not sure:
        return None
    return TimeWindow(min(start for start, _ in sure), max(end for _, end in sure))


def _in_some_zone(recording: Recording, placed: Placement, sure: TimeWindow | None) -> Placement:
    """Shift a source of unstated time zone onto the ones that are sure.

    Whole hours are tried first, as few people live elsewhere.
    """
    if sure is None:
        return placed
    start_ns = recording.span.start_ns + placed.offset_ns - sure.end_ns
    end_ns = recording.span.end_ns + placed.offset_ns - sure.start_ns
    for zones in (WHOLE_HOURS, PART_HOURS):
        fits = [zone for zone in zones if start_ns <= zone * _MINUTE_NS <= end_ns]
        if fits:
            break
    else:
        return replace(
            placed,
            origin=f"{placed.origin}; no time zone makes it meet the other recordings",
            on_axis=False,
        )
    if fits[0] == 0:
        return replace(
            placed,
            origin=f"{placed.origin}; it meets the other recordings so",
            uncertainty_ns=NS_PER_S if len(fits) == 1 else placed.uncertainty_ns,
        )
    if len(fits) > 1:
        return replace(placed, origin=f"{placed.origin}; zone not clear", on_axis=False)
    which = "whole-hour zone" if fits[0] % 60 == 0 else "zone"
    return replace(
        placed,
        offset_ns=placed.offset_ns - fits[0] * _MINUTE_NS,
        origin=f"local time; {zone_name(fits[0])} is the only {which} that meets the others",
        uncertainty_ns=NS_PER_S,
    )
