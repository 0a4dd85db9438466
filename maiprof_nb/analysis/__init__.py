"""Questions put to a session: pure functions that answer with a DataFrame. None draws."""

from __future__ import annotations

from maiprof_nb.analysis.active_memory import live_at, memory_curve
from maiprof_nb.analysis.device_activity import breakdown, gaps
from maiprof_nb.analysis.metrics import metric_series, metric_summary
from maiprof_nb.analysis.operator_ranking import operator_ranking
from maiprof_nb.analysis.phases import phases
from maiprof_nb.analysis.python_in_gaps import functions_in_gaps
from maiprof_nb.analysis.steps import steps
from maiprof_nb.analysis.utilisation import utilisation

__all__ = [
    "breakdown",
    "functions_in_gaps",
    "gaps",
    "live_at",
    "memory_curve",
    "metric_series",
    "metric_summary",
    "operator_ranking",
    "phases",
    "steps",
    "utilisation",
]
