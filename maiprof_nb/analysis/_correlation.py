"""The shift at which sparse samples follow a course best, over all shifts at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from maiprof_nb import units
from maiprof_nb.analysis._intervals import Union, covered_before
from maiprof_nb.timebase import TimeWindow

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Complexes = npt.NDArray[np.complex128]

FEWEST = 12  # samples beside the course; fewer look alike anywhere
_FINE = 20  # shifts tried within one sampling interval
_MAX_GRID = 2**20
_MOST_IN_COURSE, _MOST_IN_LOG = 2**12, 2**18  # samples; more are averaged
_FLAT = 0.02  # of the full range: less variation is noise of the sampler
_CHANCE = 7.0  # e-fold odds: about 1 in 1 000 that the best of all shifts is chance
_CLEAR = 7.0  # e-fold odds that the best shift must have over a rival
_SAME = 2.0  # within so many e-folds a shift fits as well (95 % interval)
_FAINT = 0.5  # correlation below this is another thing's course, however many samples


@dataclass(frozen=True, slots=True)
class Course:
    """When a device was busy, within the time that was recorded."""

    busy: Union
    recorded: TimeWindow


@dataclass(frozen=True, slots=True)
class Samples:
    """One series in order of time; a sample speaks for the time `window_ns` before it."""

    ts_ns: Ints
    value: Floats
    interval_ns: int
    window_ns: int


@dataclass(frozen=True, slots=True)
class Match:
    """The best shift of the samples, the best other one, and why neither may be used."""

    shift_ns: int = 0
    half_width_ns: int = 0
    score: float = 0.0
    evidence: float = 0.0
    samples: int = 0
    rival_shift_ns: int | None = None
    rival_score: float = 0.0
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class _Scores:
    """By shift, a fixed step apart: what the samples beside the course say."""

    shift_ns: Ints
    samples: Ints
    flat: Flags
    correlation: Floats
    by_rank: Floats
    freedom: Floats
    tries: float

    @property
    def misfit(self) -> Floats:
        """Logarithm of the share of variance that a linear relation leaves."""
        return _unexplained(self.correlation)

    @property
    def evidence(self) -> Floats:
        """Logarithm of the odds of a relation over none, of values or of ranks, the lower."""
        return -self.freedom / 2 * _unexplained(np.minimum(self.correlation, self.by_rank))


def _unexplained(correlation: Floats) -> Floats:
    positive = np.clip(correlation, 0.0, 1.0 - 1e-9)
    return np.log1p(-(positive**2))


def best_match(course: Course, samples: Samples, allowed: Sequence[TimeWindow] | None) -> Match:
    """Find the shift (added to the samples' times) that fits best, or say why none does.

    Parameters
    ----------
    course, samples
        What to lay beside each other.
    allowed : sequence of TimeWindow, optional
        Shifts to try; all that make them meet by default.
    """
    samples = _near(course, samples, allowed)
    if len(samples.ts_ns) == 0:
        return Match(refused="the log and the trace do not overlap")
    whole_ns = course.recorded.dur_ns + int(samples.ts_ns[-1] - samples.ts_ns[0])
    bin_ns = max(course.recorded.dur_ns // _MOST_IN_COURSE, whole_ns // _MOST_IN_LOG)
    if bin_ns > max(samples.interval_ns, course.recorded.dur_ns // FEWEST):
        return Match(
            refused="the log is too long to look everywhere in it: cut it, or place it roughly by "
            "hand first"
        )
    samples = _binned(samples, bin_ns)
    if samples.interval_ns * FEWEST > course.recorded.dur_ns:
        return _too_few(course.recorded.dur_ns // samples.interval_ns)
    step_ns = max(samples.interval_ns // _FINE, whole_ns // _MAX_GRID + 1)
    scores = _scores(course, samples, step_ns, allowed)
    usable = (scores.samples >= FEWEST) & ~scores.flat
    if not usable.any():
        return _not_comparable(scores)
    return _judged(scores, np.where(usable, scores.evidence, 0.0), samples, course, step_ns)


def _not_comparable(scores: _Scores) -> Match:
    most = int(scores.samples.max(initial=0))
    if most == 0:
        return Match(refused="the log and the trace do not overlap")
    if most < FEWEST:
        return _too_few(most)
    return Match(samples=most, refused="use is even throughout: there is nothing to recognise")


def _too_few(count: int) -> Match:
    return Match(
        samples=count,
        refused="too few samples lie within what the trace recorded: "
        f"{count}, and at least {FEWEST} are needed",
    )


def _near(course: Course, samples: Samples, allowed: Sequence[TimeWindow] | None) -> Samples:
    """The samples that any allowed shift lays beside the course."""
    if allowed is None:
        return samples
    first = course.recorded.start_ns - max(window.end_ns for window in allowed)
    last = course.recorded.end_ns - min(window.start_ns for window in allowed)
    keep = slice(*np.searchsorted(samples.ts_ns, [first, last + 1]))
    return Samples(samples.ts_ns[keep], samples.value[keep], samples.interval_ns, samples.window_ns)


def _binned(samples: Samples, bin_ns: int) -> Samples:
    """Means over bins, where samples are closer together than those."""
    if bin_ns <= samples.interval_ns:
        return samples
    place = samples.ts_ns // bin_ns
    first = np.flatnonzero(np.diff(place, prepend=place[0] - 1))
    many = np.diff(first, append=len(place))
    return Samples(
        ts_ns=samples.ts_ns[first + many - 1],
        value=np.add.reduceat(samples.value, first) / many,
        interval_ns=bin_ns,
        window_ns=max(bin_ns, samples.window_ns),
    )


def _scores(
    course: Course, samples: Samples, step_ns: int, allowed: Sequence[TimeWindow] | None
) -> _Scores:
    share, known = _expected(course, samples.window_ns, step_ns)
    at = np.rint((samples.ts_ns - samples.ts_ns[0]) / step_ns).astype(np.int64)
    shift = np.arange(-int(at[-1]), len(share), dtype=np.int64)
    shift_ns = course.recorded.start_ns - int(samples.ts_ns[0]) + shift * step_ns
    tried = _inside(shift_ns, allowed)
    shift, shift_ns = shift[tried], shift_ns[tried]
    sums = _ShiftedSums(at, known, shift)
    value = samples.value / max(float(np.ptp(samples.value)), 1e-12)
    plain, flat = sums.correlation(value, share)
    # a single spike meets a single spike anywhere; by rank it is one sample among many
    ranked, _ = sums.correlation(_ranks(value), _ranks(share))
    alike = _alike(value, 1) * _alike(share[known > 0], max(samples.interval_ns // step_ns, 1))
    return _Scores(
        shift_ns=shift_ns,
        samples=sums.count.astype(np.int64),
        flat=flat,
        correlation=np.where(flat, 0.0, plain),
        by_rank=np.where(flat, 0.0, ranked),
        freedom=np.maximum(sums.count * (1 - alike) / (1 + alike) - 2, 0.0),
        tries=max(len(shift) * step_ns / samples.interval_ns, 1.0),
    )


class _ShiftedSums:
    """Sums over the samples that lie where the course is known, for many shifts at once."""

    def __init__(self, at: Ints, known: Floats, shift: Ints) -> None:
        self._at, self._known, self._shift = at, known, shift
        self._size = 1 << int(at[-1] + 1 + len(known)).bit_length()
        self._samples, self._course = self._sparse(np.ones(len(at))), self._dense(known)
        self.count = np.rint(self._sum(self._samples, self._course))

    def correlation(self, value: Floats, course: Floats) -> tuple[Floats, Flags]:
        """Pearson's correlation at each shift, and where either side hardly varies."""
        value = value - value.mean()
        course = (course - course[self._known > 0].mean()) * self._known
        first, dense = self._sparse(value), self._dense(course)
        some = np.maximum(self.count, 1)
        mean_v = self._sum(first, self._course) / some
        mean_c = self._sum(self._samples, dense) / some
        var_v = self._sum(self._sparse(value**2), self._course) / some - mean_v**2
        var_c = self._sum(self._samples, self._dense(course**2)) / some - mean_c**2
        flat = (var_v < _FLAT**2) | (var_c < _FLAT**2)
        covariance = self._sum(first, dense) / some - mean_v * mean_c
        return covariance / np.sqrt(np.where(flat, 1.0, var_v * var_c)), flat

    def _sparse(self, value: Floats) -> Complexes:
        return np.fft.rfft(np.bincount(self._at, value), self._size)

    def _dense(self, course: Floats) -> Complexes:
        return np.fft.rfft(course, self._size)

    def _sum(self, left: Complexes, right: Complexes) -> Floats:
        return np.fft.irfft(np.conj(left) * right, self._size)[self._shift]


def _ranks(values: Floats) -> Floats:
    """Share of the values that are lower, ties in the middle."""
    _, which, many = np.unique(values, return_inverse=True, return_counts=True)
    return ((np.cumsum(many) - many / 2) / len(values))[which]


def _expected(course: Course, window_ns: int, step_ns: int) -> tuple[Floats, Floats]:
    """Busy share of the window before each moment, 0 where not all of it was recorded."""
    start, end = course.recorded.start_ns, course.recorded.end_ns
    moment = np.arange(start, end + 1, step_ns, dtype=np.int64)
    before = moment - window_ns
    covered = covered_before(course.busy, moment) - covered_before(course.busy, before)
    known = (before >= start).astype(np.float64)
    return covered / max(window_ns, 1) * known, known


def _inside(shift_ns: Ints, allowed: Sequence[TimeWindow] | None) -> Flags:
    inside = np.full(len(shift_ns), allowed is None)
    for window in allowed or ():
        inside |= (shift_ns >= window.start_ns) & (shift_ns <= window.end_ns)
    return inside


def _alike(values: Floats, lag: int) -> float:
    """Correlation of a series with itself `lag` later, at least 0."""
    left, right = values[:-lag], values[lag:]
    if len(left) < 3 or left.std() == 0 or right.std() == 0:
        return 0.0
    return float(np.clip(np.corrcoef(left, right)[0, 1], 0.0, 0.98))


def _judged(
    scores: _Scores, evidence: Floats, samples: Samples, course: Course, step_ns: int
) -> Match:
    best = int(np.argmax(evidence))
    usable = evidence > 0
    # fewer samples lie beside the course further out, so places are compared sample by sample;
    # with less than half of them a place is none: what repeats does so within the course
    freedom = np.minimum(scores.freedom, scores.freedom[best])
    behind = np.where(usable, freedom / 2 * (scores.misfit - scores.misfit[best]), np.inf)
    apart_ns = np.abs(scores.shift_ns - scores.shift_ns[best])
    as_good = _lobe(behind < _SAME, best, scores.shift_ns, step_ns)
    peak = _lobe(behind < _CLEAR, best, scores.shift_ns, step_ns)
    chance = np.log(scores.tries)
    enough = scores.samples * 2 >= scores.samples[best]
    others = (
        usable
        & enough
        & ~peak
        & (apart_ns > 2 * samples.interval_ns)
        & (evidence > chance + _CHANCE / 2)
    )
    rival = int(np.argmin(np.where(others, behind, np.inf))) if others.any() else None
    half_width_ns = max(int(apart_ns[as_good].max()), samples.interval_ns // 2)
    found = Match(
        shift_ns=int(scores.shift_ns[best]),
        half_width_ns=half_width_ns,
        score=float(scores.correlation[best]),
        evidence=float(evidence[best]),
        samples=int(scores.samples[best]),
        rival_shift_ns=None if rival is None else int(scores.shift_ns[rival]),
        rival_score=0.0 if rival is None else float(scores.correlation[rival]),
    )
    return _refused(found, chance, behind[rival] if rival is not None else np.inf, course)


def _refused(found: Match, chance: float, behind: float, course: Course) -> Match:
    reason = None
    if found.score < _FAINT or found.evidence < chance + _CHANCE:
        reason = (
            f"the best correlation, {found.score:.2f} over {found.samples} samples, is no better "
            "than chance would give"
        )
    elif behind < _CLEAR and found.rival_shift_ns is not None:
        apart = units.duration(abs(found.rival_shift_ns - found.shift_ns))
        side = "later" if found.rival_shift_ns > found.shift_ns else "earlier"
        reason = (
            f"the course repeats itself: {apart} {side} fits about as well (correlation "
            f"{found.rival_score:.2f} against {found.score:.2f})"
        )
    elif found.half_width_ns * 4 > course.recorded.dur_ns:
        reason = (
            "the course changes too slowly: shifts within "
            f"{units.duration(found.half_width_ns)} fit as well"
        )
    return replace(found, refused=reason)


def _lobe(inside: Flags, best: int, shift_ns: Ints, step_ns: int) -> Flags:
    """The stretch of neighbouring shifts round the best that are all inside."""
    breaks = ~inside[1:] | ~inside[:-1] | (np.diff(shift_ns) > step_ns)
    stretch = np.concatenate(([0], np.cumsum(breaks)))
    found: Flags = stretch == stretch[best]
    return found
