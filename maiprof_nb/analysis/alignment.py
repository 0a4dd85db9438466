"""Where a metrics log lies beside a trace, from the course of both."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis._correlation import Course, Samples, best_match
from maiprof_nb.analysis._utilisation_series import averaging_window_ns, utilisation_series
from maiprof_nb.analysis.device_activity import Activity, activities
from maiprof_nb.errors import NotAnswerableError, UsageError
from maiprof_nb.placement import PART_HOURS, WHOLE_HOURS, Placement, zone_unstated
from maiprof_nb.session import Session
from maiprof_nb.timebase import NS_PER_S, TimeWindow

_MINUTE_NS = 60 * NS_PER_S
_MOST_PAIRS = 16
SEARCH_S = 60.0


@dataclass(frozen=True, slots=True)
class OffsetEstimate:
    """Where a recording lies, and how clearly.

    Parameters
    ----------
    offset_ns : int or None
        Session time at the recording's time zero; None where nothing could be compared.
    uncertainty_ns : int or None
        Half the sampling interval, or half the width of what fits as well, whichever is more.
    score : float
        Correlation of device-busy and series there, -1 to 1.
    rival_score : float
        Highest correlation at any other place that is not chance; 0 where there is none.
    rival_offset_ns : int or None
        That place.
    samples : int
        Samples that lie beside the trace at the estimate.
    counter, device : str
        The series that was compared.
    refused : str or None
        Why the estimate must not be used; None where it may.
    """

    offset_ns: int | None = None
    uncertainty_ns: int | None = None
    score: float = 0.0
    rival_score: float = 0.0
    rival_offset_ns: int | None = None
    samples: int = 0
    counter: str = ""
    device: str = ""
    refused: str | None = None


def estimate_offset(
    session: Session, recording: int | str, *, search_s: float = SEARCH_S
) -> OffsetEstimate:
    """Estimate where a recording lies from when the device was busy.

    Parameters
    ----------
    session : Session
        Holds a trace with device work and a metrics log. A selected window limits the
        device work that is compared.
    recording : int or str
        Which one to move, by position or name: a metrics log, or a trace.
    search_s : float
        How far from its present place, and from every place that a time zone would give it,
        it is looked for, in seconds. Everywhere, where it has no clock.

    Returns
    -------
    OffsetEstimate
        The shift at which the share of time the device was busy over each sample's averaging
        window correlates best with the sampled utilisation (power, where nothing else was
        sampled). Refused in words where the course of both does not single it out.

    Raises
    ------
    UsageError
        If there is no such recording, or it is a snapshot.

    Notes
    -----
    A shift counts as evidence by the likelihood ratio of a linear relation over none, with
    fewer samples where neighbours are alike. The best must be beyond chance among all shifts
    tried, and beat each other place per sample. Only samples within the recorded time count:
    the device may have worked before and after. What was sampled may include other processes.
    """
    number = session.number_of(recording)
    kind = session.recordings[number].kind
    if kind == "snapshot":
        raise UsageError(
            "a snapshot has no course of utilisation to align by",
            where=session.recordings[number].source,
            remedy="Place it by hand: session.placed({recording: offset_ns})",
        )
    pairs = _pairs(session, number)
    if not pairs:
        return OffsetEstimate(refused=_no_partner(session, number))
    found = [_compared(session, number, pair, search_s) for pair in pairs[:_MOST_PAIRS]]
    best, _ = max(found, key=lambda one: (one[0].refused is None, one[1]))
    rival = next((one for one, _ in found if _disagree(best, one)), None)
    if rival is None or rival.offset_ns is None or best.offset_ns is None:
        return best
    apart = units.duration(abs(rival.offset_ns - best.offset_ns))
    return replace(
        best,
        rival_offset_ns=rival.offset_ns,
        rival_score=rival.score,
        refused=f"devices disagree: {best.device} and {rival.device} put it {apart} apart",
    )


def aligned(session: Session, recording: int | str, *, search_s: float = SEARCH_S) -> Session:
    """A session in which a recording lies where `estimate_offset` puts it.

    Raises
    ------
    NotAnswerableError
        If the estimate is refused; the text says why.
    UsageError
        If there is no such recording, or it is a snapshot.
    """
    found = estimate_offset(session, recording, search_s=search_s)
    number = session.number_of(recording)
    if found.refused is not None or found.offset_ns is None:
        raise NotAnswerableError(
            f"no offset can be estimated: {found.refused}",
            where=session.recordings[number].source,
            remedy="Place it by hand: session.placed({recording: offset_ns}); or record with "
            "time stamps and zone",
        )
    origin = (
        f"estimated by {found.counter} against device-busy "
        f"(correlation {found.score:.2f}, next {found.rival_score:.2f})"
    )
    return session.placed({number: Placement(found.offset_ns, origin, found.uncertainty_ns)})


@dataclass(frozen=True, slots=True)
class _Pair:
    """Device work of a trace, and the log of what may be the same device."""

    activity: Activity
    log: int
    device: str
    counter: str
    samples: Samples


def _pairs(session: Session, number: int) -> list[_Pair]:
    """What the recording can be compared with: other recordings on the axis, if any are."""
    on_axis = {n for n, placement in enumerate(session.placements) if placement.on_axis}
    others = (on_axis or set(range(len(session.recordings)))) - {number}
    wanted = others | {number}
    work = [one for one in activities(session) if one.recording in wanted]
    logs = [
        n
        for n in sorted(wanted)
        if session.recordings[n].kind == "metrics" and _useful(session, number, n)
    ]
    if session.recordings[number].kind == "trace":
        work = [one for one in work if one.recording == number]
    return [pair for n in logs for pair in _pairs_with(session, n, work)]


def _useful(session: Session, number: int, log: int) -> bool:
    return log == number or session.recordings[number].kind == "trace"


def _pairs_with(session: Session, log: int, work: list[Activity]) -> list[_Pair]:
    counter, rows = utilisation_series(session.recordings[log].table("counters"))
    found = {
        str(device): _samples(series, counter)
        for device, series in rows.groupby("device", observed=True, dropna=False)
    }
    found = {device: samples for device, samples in found.items() if np.ptp(samples.value) > 0}
    same = [
        (one, device)
        for one in work
        for device in found
        if one.device is not None and re.findall(r"\d+", device)[:1] == [str(one.device)]
    ]
    return [
        _Pair(one, log, device, counter, found[device])
        for one, device in same or [(one, device) for one in work for device in found]
    ]


def _samples(series: pd.DataFrame, counter: str) -> Samples:
    """One value a moment, in order of time."""
    by_time = series.groupby("ts_ns")["value"].mean()
    ts_ns = by_time.index.to_numpy(np.int64)
    interval_ns = max(int(np.median(np.diff(ts_ns))), 1) if len(ts_ns) > 1 else 1
    value = by_time.to_numpy(np.float64)
    return Samples(ts_ns, value, interval_ns, averaging_window_ns(counter, interval_ns))


def _compared(
    session: Session, number: int, pair: _Pair, search_s: float
) -> tuple[OffsetEstimate, float]:
    """The estimate from one pair, and its evidence."""
    placement = session.placements[number]
    span = session.recordings[pair.activity.recording].span
    offset_ns = session.placements[pair.activity.recording].offset_ns
    recorded = TimeWindow(span.start_ns + offset_ns, span.end_ns + offset_ns)
    if session.selected_window is not None:
        recorded = recorded.intersect(session.selected_window)
    samples, moved = pair.samples, pair.log == number
    if not moved:
        # the trace moves: as far as the log would, the other way
        on_axis = samples.ts_ns + session.placements[pair.log].offset_ns
        samples = replace(samples, ts_ns=on_axis)
    centres = _centres(session, number)
    allowed = None
    if centres is not None:
        reach_ns = round(search_s * NS_PER_S)
        shifts = [centre if moved else placement.offset_ns - centre for centre in centres]
        allowed = [TimeWindow(shift - reach_ns, shift + reach_ns) for shift in shifts]
    match = best_match(Course(pair.activity.busy, recorded), samples, allowed)

    def offset_of(shift_ns: int) -> int:
        return shift_ns if moved else placement.offset_ns - shift_ns

    estimate = OffsetEstimate(
        offset_ns=offset_of(match.shift_ns) if match.score > 0 else None,
        uncertainty_ns=match.half_width_ns if match.score > 0 else None,
        score=match.score,
        rival_score=match.rival_score,
        rival_offset_ns=None if match.rival_shift_ns is None else offset_of(match.rival_shift_ns),
        samples=match.samples,
        counter=pair.counter,
        device=pair.device,
        refused=match.refused,
    )
    return estimate, match.evidence


def _centres(session: Session, number: int) -> list[int] | None:
    """Offsets near which a recording may lie; None for anywhere."""
    placement, clock = session.placements[number], session.recordings[number].clock
    found = [placement.offset_ns] if placement.on_axis and len(session.recordings) > 1 else []
    if clock.epoch_ns is not None and session.epoch_ns is not None:
        read_as_utc_ns = clock.epoch_ns - session.epoch_ns
        zones = (*WHOLE_HOURS, *PART_HOURS) if zone_unstated(clock) else (0,)
        found += [read_as_utc_ns - zone * _MINUTE_NS for zone in zones]
    return found or None


def _disagree(best: OffsetEstimate, other: OffsetEstimate) -> bool:
    if best.refused or other.refused or best.offset_ns is None or other.offset_ns is None:
        return False
    apart_ns = abs(best.offset_ns - other.offset_ns)
    return apart_ns > (best.uncertainty_ns or 0) + (other.uncertainty_ns or 0)


def _no_partner(session: Session, number: int) -> str:
    log = session.recordings[number].kind == "metrics"
    if not log and all(one.recording != number for one in activities(session)):
        return "it holds no device work"
    if log and not activities(session):
        return "no trace here holds device work"
    if log and not any(session.placements[one.recording].on_axis for one in activities(session)):
        return "no trace with device work is on the common axis: align the trace instead"
    if log:
        return "it holds no utilisation or power that varies over time"
    return "no log of utilisation or power that varies over time is on the common axis"
