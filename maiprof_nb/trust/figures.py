"""The figures a check can speak about, and what each needs to have been recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from maiprof_nb.session import Session


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure, or a family that stands and falls together.

    Parameters
    ----------
    meaning : str
        What it is.
    lacking : callable
        ``lacking(session)`` says what was not recorded and what would answer the figure;
        empty if everything is there.
    """

    meaning: str
    lacking: Callable[[Session], str]


def _any_of(tables: tuple[str, ...], sentence: str) -> Callable[[Session], str]:
    def lacking(session: Session) -> str:
        return "" if any(_rows(session, table) for table in tables) else sentence

    return lacking


def _rows(session: Session, table: str) -> int:
    return max(
        (len(one.tables[table]) for one in session.recordings if table in one.tables), default=0
    )


def _both(*needs: Callable[[Session], str]) -> Callable[[Session], str]:
    def lacking(session: Session) -> str:
        return next((text for need in needs if (text := need(session))), "")

    return lacking


def _ranks(session: Session) -> str:
    if len(session.ranks) > 1:
        return ""
    return "Only one rank is loaded. Load the folder that holds the traces of all ranks."


def _recordings(session: Session) -> str:
    if len(session.recordings) > 1:
        return ""
    return "There is one recording only, so there is nothing to align it with."


_WORK = _any_of(
    ("kernels",),
    "The recording holds no device work. Record with ProfilerActivity.CUDA.",
)
_OPERATORS = _any_of(
    ("operators",),
    "The recording holds no operators. Record with ProfilerActivity.CPU.",
)
_HOST = _any_of(
    ("operators", "annotations", "python_calls", "launches"),
    "The recording holds no host events. Record with ProfilerActivity.CPU.",
)
_PYTHON = _any_of(
    ("python_calls",),
    "No Python functions were recorded. Record with torch.profiler.profile(with_stack=True).",
)
_STEPS = _any_of(
    ("steps",),
    "No steps were marked. Call prof.step() after each step of the loop.",
)
_MEMORY = _any_of(
    ("allocator_events", "segments", "memory_events"),
    "Nothing about memory was recorded. Record a snapshot "
    "(torch.cuda.memory._record_memory_history) or use profile_memory=True.",
)
_USED = _any_of(
    ("counters", "allocator_events", "segments", "memory_events"),
    "Nothing says how much of the device's memory was used. Sample memory.used and memory.total "
    "beside the job, or record a memory snapshot.",
)
_COUNTERS = _any_of(
    ("counters",),
    "No metrics were loaded. Sample the GPU beside the job and load the folder of both.",
)

FIGURES = {
    "gpu-utilisation": Figure("share of the window in which a device worked", _WORK),
    "breakdown": Figure("compute, exposed communication, exposed copies and idle time", _WORK),
    "gaps": Figure("times in which a device had nothing to do, and what ended them", _WORK),
    "operator-times": Figure("calls, total and self time of operators on the host", _OPERATORS),
    "operator-device-times": Figure(
        "device time of operators: what they launched", _both(_OPERATORS, _WORK)
    ),
    "phases": Figure("time and device work of the phases of the training loop", _HOST),
    "steps": Figure("when each step began and ended, with its device work", _STEPS),
    "python-in-gaps": Figure("Python functions while every GPU is idle", _both(_WORK, _PYTHON)),
    "memory-curve": Figure("memory over time and who holds it", _MEMORY),
    "memory-peak": Figure("the most memory in use, when, and whose", _MEMORY),
    "memory-headroom": Figure(
        "memory of the device that is never used, and how many samples more would fit", _USED
    ),
    "metrics": Figure("what samplers measured", _COUNTERS),
    "alignment": Figure("where recordings lie on one axis of time", _recordings),
    "ranks": Figure("what differs among ranks: stragglers, waits, imbalance", _ranks),
}
