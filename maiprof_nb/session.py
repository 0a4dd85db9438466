"""A session: the recordings of one job on one axis of time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pandas as pd

from maiprof_nb import sql
from maiprof_nb.errors import LoadError, UsageError
from maiprof_nb.recording import Note, Recording
from maiprof_nb.tables import SCHEMAS
from maiprof_nb.tables.joining import join
from maiprof_nb.timebase import NS_PER_S, TimeWindow

_HOUR_NS = 3600 * NS_PER_S
_ZONE_HOURS = sorted(range(-14, 15), key=abs)


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
    """

    offset_ns: int
    origin: str
    uncertainty_ns: int | None
    on_axis: bool = True


class Session:
    """Recordings that belong together, on one axis. Immutable.

    Parameters
    ----------
    recordings : sequence of Recording
        At most one trace a rank.

    Raises
    ------
    LoadError
        If two traces claim the same rank.

    Notes
    -----
    Time zero of the session is the earliest event of its traces and snapshots (of its
    metrics where there is neither); all times are ns from there, and ``epoch_ns`` says which
    wall clock that was, if any source knows.
    """

    def __init__(self, recordings: Sequence[Recording]) -> None:
        self.recordings = tuple(recordings)
        _refuse_shared_ranks(self.recordings)
        self.epoch_ns, self.placements = _place(self.recordings)
        self.selected_window: TimeWindow | None = None
        self.selected_ranks: tuple[int, ...] | None = None
        self._whole: Session | None = None

    def select(
        self,
        *,
        ranks: Iterable[int] | None = None,
        steps: tuple[int, int] | None = None,
        window: TimeWindow | None = None,
    ) -> Session:
        """A session of the same recordings that shows only a part.

        Parameters
        ----------
        ranks : iterable of int, optional
            Ranks to keep; recordings without a rank stay.
        steps : (int, int), optional
            First and last step to keep, by their numbers.
        window : TimeWindow, optional
            Time to keep, in ns of the session: rows that overlap it.

        Raises
        ------
        UsageError
            If a rank or step is not in the session.
        """
        part = Session.__new__(Session)
        part.recordings, part.epoch_ns = self.recordings, self.epoch_ns
        part.placements = self.placements
        part.__dict__["_whole"] = self.whole
        part.selected_ranks = self.selected_ranks
        part.selected_window = self.selected_window
        if ranks is not None:
            part.selected_ranks = tuple(sorted(ranks))
            unknown = set(part.selected_ranks) - set(self.ranks)
            if unknown:
                raise UsageError(
                    f"rank {min(unknown)} is not in this session",
                    remedy=f"Ranks here: {self.ranks or 'none'}",
                )
        if steps is not None:
            window = self._steps_window(*steps)
        if window is not None:
            part.selected_window = window.intersect(self.window)
        return part

    def _steps_window(self, first: int, last: int) -> TimeWindow:
        table = self.table("steps")
        found = table[table["step"].between(first, last)]
        if found.empty:
            raise UsageError(
                f"steps {first} to {last} are not in this session",
                remedy=f"Steps here: {sorted(set(table['step'])) or 'none'}",
            )
        return TimeWindow(int(found["ts_ns"].min()), int((found["ts_ns"] + found["dur_ns"]).max()))

    @property
    def whole(self) -> Session:
        """The session without any selection."""
        return self._whole or self

    @cached_property
    def ranks(self) -> list[int]:
        """Ranks that a trace claims, in order."""
        return sorted({r.rank for r in self.recordings if r.rank is not None})

    @cached_property
    def span(self) -> TimeWindow:
        """First to last moment of the recordings on the session's axis, in ns.

        Metrics count only where there is neither trace nor snapshot: samplers usually
        run longer than what they watch.
        """
        on_axis = [
            (recording, placement.offset_ns)
            for recording, placement in zip(self.recordings, self.placements, strict=True)
            if placement.on_axis
        ] or [(recording, 0) for recording in self.recordings]
        watched = [pair for pair in on_axis if pair[0].kind != "metrics"] or on_axis
        spans = [(recording.span, offset) for recording, offset in watched]
        return TimeWindow(
            min((span.start_ns + offset for span, offset in spans), default=0),
            max((span.end_ns + offset for span, offset in spans), default=0),
        )

    @property
    def window(self) -> TimeWindow:
        """The selected time, or else the whole span."""
        return self.selected_window or self.span

    @cached_property
    def clocks(self) -> pd.DataFrame:
        """One row a recording: its clock, where the alignment came from and how sure it is."""
        return pd.DataFrame(
            {
                "recording": range(len(self.recordings)),
                "source": [r.source for r in self.recordings],
                "kind": [r.kind for r in self.recordings],
                "rank": pd.array([r.rank for r in self.recordings], dtype="Int64"),
                "offset_ns": [p.offset_ns for p in self.placements],
                "origin": [p.origin for p in self.placements],
                "uncertainty_ns": pd.array(
                    [p.uncertainty_ns for p in self.placements], dtype="Int64"
                ),
                "on_axis": [p.on_axis for p in self.placements],
            }
        )

    @property
    def notes(self) -> list[tuple[int, Note]]:
        """Every note with the number of its recording."""
        return [(i, note) for i, r in enumerate(self.recordings) for note in r.notes]

    @property
    def simulated(self) -> bool:
        """True when any recording was made by a simulator."""
        return any(recording.simulated for recording in self.recordings)

    def table(self, name: str) -> pd.DataFrame:
        """One table over all recordings, on the session's axis.

        Parameters
        ----------
        name : str
            A table of `maiprof_nb.tables.SCHEMAS`.

        Returns
        -------
        DataFrame
            The columns of the schema with ``recording`` (position in ``recordings``) and
            ``rank`` in front; times are ns of the session. In a selected session only the
            rows of the selected ranks that overlap the selected window.
        """
        if name not in SCHEMAS:
            raise UsageError(f"there is no table {name}", remedy=f"Tables: {', '.join(SCHEMAS)}")
        cache = self.__dict__.setdefault("_tables", {})
        if name not in cache:
            cache[name] = self._selected(name)
        found: pd.DataFrame = cache[name]
        return found

    def sql(self, query: str) -> pd.DataFrame:
        """Answer a query over all tables, in DuckDB's SQL.

        Parameters
        ----------
        query : str
            For example ``select name, count(*) from kernels group by name``. Tables and
            columns are those of `table`; a selection of ranks or time does not apply.

        Raises
        ------
        UsageError
            If the query is refused.
        MaiprofError
            If DuckDB is not installed.
        """
        if "_connection" not in self.__dict__:
            offsets = [placement.offset_ns for placement in self.placements]
            self.__dict__["_connection"] = sql.connect(self.recordings, offsets)
        return sql.answer(self.__dict__["_connection"], query)

    def _selected(self, name: str) -> pd.DataFrame:
        parts = [
            _placed(recording.table(name), number, recording.rank, placement.offset_ns)
            for number, (recording, placement) in enumerate(
                zip(self.recordings, self.placements, strict=True)
            )
            if name in recording.tables and self._shows(recording)
        ]
        joined = join(parts) if parts else _placed(SCHEMAS[name].empty(), 0, None, 0)
        return joined if self.selected_window is None else _clip(joined, self.selected_window)

    def _shows(self, recording: Recording) -> bool:
        chosen = self.selected_ranks
        return chosen is None or recording.rank is None or recording.rank in chosen


def _refuse_shared_ranks(recordings: Sequence[Recording]) -> None:
    claimed: dict[int, str] = {}
    for recording in recordings:
        if recording.kind != "trace" or recording.rank is None:
            continue
        if recording.rank in claimed:
            raise LoadError(
                f"two traces claim rank {recording.rank}: {claimed[recording.rank]} "
                f"and {recording.source}",
                remedy="Load them one at a time to compare them, or say which is which: "
                "load([...], ranks={'first.json.gz': 0, 'second.json.gz': 1})",
            )
        claimed[recording.rank] = recording.source


def _place(recordings: Sequence[Recording]) -> tuple[int | None, tuple[Placement, ...]]:
    """Time zero of the session on the wall clock, and each recording's place."""
    known = [
        (r.clock.epoch_ns + r.span.start_ns, r.kind)
        for r in recordings
        if r.clock.epoch_ns is not None
    ]
    for kinds in (("trace", "snapshot"), ("metrics",)):
        starts = [start for start, kind in known if kind in kinds]
        if starts:
            break
    epoch_ns = min(starts) if known and starts else None
    return epoch_ns, tuple(_placement(r, epoch_ns, recordings) for r in recordings)


def _placement(
    recording: Recording, epoch_ns: int | None, recordings: Sequence[Recording]
) -> Placement:
    clock = recording.clock
    if clock.epoch_ns is None or epoch_ns is None:
        alone = len(recordings) == 1
        origin = clock.origin if alone else f"{clock.origin}; not tied to the other clocks"
        return Placement(-recording.span.start_ns, origin, clock.uncertainty_ns, on_axis=alone)
    offset = clock.epoch_ns - epoch_ns
    placed = Placement(offset, clock.origin, clock.uncertainty_ns)
    if clock.uncertainty_ns is None or clock.uncertainty_ns < _HOUR_NS:
        return placed
    return _in_some_zone(recording, placed, epoch_ns, recordings)


def _in_some_zone(
    recording: Recording, placed: Placement, epoch_ns: int, recordings: Sequence[Recording]
) -> Placement:
    """Shift a source of unstated time zone by whole hours onto the ones that are sure."""
    sure = [
        (r.clock.epoch_ns - epoch_ns + r.span.start_ns, r.clock.epoch_ns - epoch_ns + r.span.end_ns)
        for r in recordings
        if r.clock.epoch_ns is not None and (r.clock.uncertainty_ns or 0) < _HOUR_NS
    ]
    if not sure:
        return placed
    first, last = min(start for start, _ in sure), max(end for _, end in sure)
    start = recording.span.start_ns + placed.offset_ns
    end = recording.span.end_ns + placed.offset_ns
    fits = [h for h in _ZONE_HOURS if start + h * _HOUR_NS <= last and end + h * _HOUR_NS >= first]
    if not fits:
        return replace(
            placed,
            origin=f"{placed.origin}; no whole-hour zone makes it meet the other recordings",
            on_axis=False,
        )
    if fits[0] == 0:
        return replace(placed, origin=f"{placed.origin}; it meets the other recordings so")
    if len(fits) > 1:
        return replace(placed, origin=f"{placed.origin}; zone not clear", on_axis=False)
    zone = -fits[0]
    return replace(
        placed,
        offset_ns=placed.offset_ns + fits[0] * _HOUR_NS,
        origin=f"local time; UTC{zone:+d} is the only whole-hour zone that meets the others",
        uncertainty_ns=NS_PER_S,
    )


def _placed(frame: pd.DataFrame, number: int, rank: int | None, offset_ns: int) -> pd.DataFrame:
    times = {name: frame[name] + offset_ns for name in ("ts_ns", "end_ns") if name in frame}
    moved = frame.assign(**times)
    moved.insert(0, "recording", number)
    moved.insert(1, "rank", pd.array([rank] * len(frame), dtype="Int64"))
    return moved


def _clip(frame: pd.DataFrame, window: TimeWindow) -> pd.DataFrame:
    if "ts_ns" not in frame:
        return frame
    ends = frame["ts_ns"]
    if "dur_ns" in frame:
        ends = ends + frame["dur_ns"].fillna(0)
    elif "end_ns" in frame:
        ends = frame["end_ns"].fillna(window.end_ns)
    begins = frame["ts_ns"]
    inside = (begins < window.end_ns) & ((ends > window.start_ns) | (begins >= window.start_ns))
    return frame[inside.fillna(value=False)].reset_index(drop=True)
