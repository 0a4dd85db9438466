"""What reading the file already found out."""

from __future__ import annotations

from maiprof_nb import units
from maiprof_nb.recording import Note, Recording
from maiprof_nb.trust.figures import FIGURES
from maiprof_nb.trust.rule import Result, failed, not_applicable, passed, rule
from maiprof_nb.trust.trace import Trace

_CUT = ("cut", "archive-cut")
_CUT_ENDS = ("-cut", "-damaged")
_LOST = ("event-lost", "events-dropped", "rows-dropped", "time-missing", "time-unreadable")
_UNFINISHED = ("negative-duration", "duration-missing")
_EVERYTHING = tuple(name for name in FIGURES if name != "alignment")


def _notes(recording: Recording, codes: tuple[str, ...]) -> list[Note]:
    return [note for note in recording.notes if note.code in codes]


def was_cut(recording: Recording) -> bool:
    """True when the file ended before its end."""
    return any(note.code in _CUT or note.code.endswith(_CUT_ENDS) for note in recording.notes)


@rule(
    "file-cut",
    of="recording",
    title="the file ends early",
    remedy="Get the whole file; the job may have been killed while it was written",
    reduces=_EVERYTHING,
)
def file_cut(recording: Recording) -> Result:
    """The file, or its compression, breaks off: what was after the cut is unknown.

    Events of a trace are not in order of time, so that also times before the last one may lack
    events, and device work may be missing altogether.
    """
    if not was_cut(recording):
        return passed()
    return failed(
        "The file is cut: what came after is unknown, and events may be missing anywhere."
    )


@rule(
    "events-lost",
    of="recording",
    title="events could not be read",
    remedy="Look at the notes of the recording for the first of them",
    reduces=_EVERYTHING,
)
def events_lost(recording: Recording) -> Result:
    """Events, samples or rows of the file could not be read and are missing from the tables."""
    lost = sum(note.count for note in _notes(recording, _LOST))
    if not lost:
        return passed()
    total = lost + sum(recording.events.values())
    return failed(
        f"{units.count(lost)} events or rows of the file could not be read and are missing.",
        lost,
        lost / total,
    )


@rule(
    "unfinished-events",
    of="trace",
    title="events without an end",
    remedy="Stop the profiler before the program ends",
    reduces=("operator-times", "operator-device-times", "phases", "gpu-utilisation", "breakdown"),
)
def unfinished(trace: Trace) -> Result:
    """Events have a negative, absent or unreadable duration and count as 0.

    PyTorch writes -1 for what had not ended when the recording stopped.
    """
    recording = trace.recording
    count = sum(note.count for note in _notes(recording, _UNFINISHED))
    complete = sum(n for kind, n in recording.events.items() if kind.startswith("X/"))
    if not complete:
        return not_applicable("the trace holds no complete events")
    if not count:
        return passed()
    return failed(
        f"{units.count(count)} of {units.count(complete)} events have no end and count as 0.",
        count,
        count / complete,
    )


@rule(
    "simulated",
    of="recording",
    title="made by a simulator",
    remedy="Load a recording of a real job to judge one",
    says=tuple(FIGURES),
)
def simulated(recording: Recording) -> Result:
    """The file says that a simulator made it. That is no fault, but must be said."""
    if not recording.simulated:
        return passed()
    return failed("This recording was made by a simulator; no GPU was involved.")
