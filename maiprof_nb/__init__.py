"""Find out why a PyTorch job is slow or out of memory."""

from __future__ import annotations

from maiprof_nb.errors import LoadError, MaiprofError, NotAnswerableError, UsageError
from maiprof_nb.loading import load
from maiprof_nb.recording import Note, Recording
from maiprof_nb.session import Session
from maiprof_nb.timebase import Clock, TimeWindow

__version__ = "0.1.0"

__all__ = [
    "Clock",
    "LoadError",
    "MaiprofError",
    "NotAnswerableError",
    "Note",
    "Recording",
    "Session",
    "TimeWindow",
    "UsageError",
    "load",
]
