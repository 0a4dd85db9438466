"""A session: the recordings of one job on one axis of time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pandas as pd

from maiprof_nb import session_file, sql
from maiprof_nb.errors import LoadError, UsageError
from maiprof_nb.placement import BY_HAND, Axis, Placement, axis_of, spaced, with_stated
from maiprof_nb.recording import Note, Recording
from maiprof_nb.session_file import source_name
from maiprof_nb.tables import SCHEMAS
from maiprof_nb.tables.joining import join
from maiprof_nb.timebase import TimeWindow


@dataclass(frozen=True, slots=True)
class _Part:
    """What a session that shows only a part was made from, and the part."""

    whole: Session
    ranks: tuple[int, ...] | None
    window: TimeWindow | None


class Session:
    """Recordings that belong together, on one axis. Immutable.

    Parameters
    ----------
    recordings : sequence of Recording
        At most one trace a rank.
    axis : Axis, optional
        Where they lie, if not where their clocks say.
    part : optional
        What `select` shows of another session.

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

    def __init__(
        self,
        recordings: Sequence[Recording],
        *,
        axis: Axis | None = None,
        part: _Part | None = None,
    ) -> None:
        self.recordings = tuple(recordings)
        _refuse_shared_ranks(self.recordings)
        self.axis = axis or axis_of(self.recordings)
        self._part = part

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
        chosen = self.selected_ranks
        if ranks is not None:
            chosen = tuple(sorted(ranks))
            unknown = set(chosen) - set(self.ranks)
            if unknown:
                raise UsageError(
                    f"rank {min(unknown)} is not in this session",
                    remedy=f"Ranks here: {self.ranks or 'none'}",
                )
        if steps is not None:
            window = self._steps_window(*steps)
        shown = self.selected_window if window is None else window.intersect(self.window)
        part = _Part(self.whole, chosen, shown)
        return Session(self.recordings, axis=self.axis, part=part)

    def placed(
        self,
        where: Mapping[int | str, int | Placement | None] | None = None,
        *,
        uncertainty_ns: int | None = None,
        interval_s: Mapping[int | str, float] | None = None,
    ) -> Session:
        """A session in which some recordings lie elsewhere on the axis. The axis stays.

        Parameters
        ----------
        where : Mapping, optional
            Recording (its position, path or file name) to the session's time in ns at the
            recording's own time zero, or to a `Placement`; None puts it back to where its
            clock says.
        uncertainty_ns : int, optional
            How far off an offset given as a number may be, e.g. the width of one pixel where
            it was dragged; not stated by default.
        interval_s : Mapping, optional
            Recording to the seconds between its samplings, for those that have an order of
            rows and no times.

        Raises
        ------
        UsageError
            If there is no such recording, a snapshot without times is placed without an
            interval, or an interval is given for a recording that has times.
        """
        intervals = {self.number_of(key): value for key, value in (interval_s or {}).items()}
        recordings = [
            spaced(recording, intervals[number]) if number in intervals else recording
            for number, recording in enumerate(self.recordings)
        ]
        stated: dict[int, Placement | None] = {
            number: None for number in intervals if not self.placements[number].stated
        }
        stated |= {
            self.number_of(key): _stated(value, uncertainty_ns)
            for key, value in (where or {}).items()
        }
        moved = Session(recordings, axis=with_stated(self.axis, recordings, stated))
        if self._part is None:
            return moved
        return Session(recordings, axis=moved.axis, part=replace(self._part, whole=moved))

    def number_of(self, recording: int | str) -> int:
        """Position of a recording, by itself, the recording's path or its file name.

        Raises
        ------
        UsageError
            If there is none, or several have that name.
        """
        if isinstance(recording, int):
            found = [recording] if 0 <= recording < len(self.recordings) else []
        else:
            sources = [one.source for one in self.recordings]
            names = sources if recording in sources else [source_name(one) for one in sources]
            found = [number for number, name in enumerate(names) if name == recording]
        if len(found) != 1:
            here = ", ".join(f"{n}: {source_name(r.source)}" for n, r in enumerate(self.recordings))
            problem = "is not in" if not found else "is the name of several in"
            raise UsageError(
                f"recording {recording} {problem} this session",
                remedy=f"Recordings here: {here or 'none'}",
            )
        return found[0]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write down what the session is made of, to be loaded again with all its places.

        Parameters
        ----------
        path : str or path
            A local file, by custom ``NAME.maiprof.json``, best in the folder of the recordings:
            what lies there or below is named relative to it, and `maiprof_nb.load` opens
            nothing else from a session file unless told to trust it.

        Raises
        ------
        UsageError
            If a recording is no longer where it was, or the file cannot be written.

        Notes
        -----
        The recordings themselves are not copied; of each the size and a hash of both ends are
        kept to detect change. A selection is not saved.
        """
        session_file.write(path, self.recordings, self.axis)

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
        return self._part.whole if self._part else self

    @property
    def selected_window(self) -> TimeWindow | None:
        """The time that was selected, in ns of the session."""
        return self._part.window if self._part else None

    @property
    def selected_ranks(self) -> tuple[int, ...] | None:
        """The ranks that were selected, in order."""
        return self._part.ranks if self._part else None

    @property
    def epoch_ns(self) -> int | None:
        """Wall clock (ns since 1970-01-01 UTC) at time zero, if any source knows."""
        return self.axis.epoch_ns

    @property
    def placements(self) -> tuple[Placement, ...]:
        """Where each recording lies on the axis."""
        return self.axis.placements

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


def _stated(value: int | Placement | None, uncertainty_ns: int | None) -> Placement | None:
    if value is None:
        return None
    if isinstance(value, Placement):
        return replace(value, stated=True)
    return Placement(int(value), BY_HAND, uncertainty_ns, stated=True)


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
