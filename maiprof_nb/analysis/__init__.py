"""Questions put to a session: pure functions that answer with a DataFrame. None draws."""

from __future__ import annotations

from maiprof_nb.analysis.active_memory import live_at, memory_curve
from maiprof_nb.analysis.alignment import aligned, estimate_offset
from maiprof_nb.analysis.call_tree import callees, callers
from maiprof_nb.analysis.comparison import compare
from maiprof_nb.analysis.device_activity import breakdown, gaps
from maiprof_nb.analysis.gap_causes import gap_causes, idle_by_cause
from maiprof_nb.analysis.generation import generation
from maiprof_nb.analysis.generation_stages import generation_stages
from maiprof_nb.analysis.icicle import icicle
from maiprof_nb.analysis.job_states import job_states
from maiprof_nb.analysis.kernel_ranking import kernel_ranking
from maiprof_nb.analysis.launch_bound_operators import launch_bound_operators
from maiprof_nb.analysis.launch_queue import launch_queue
from maiprof_nb.analysis.launch_rate import launch_rate
from maiprof_nb.analysis.memory_diff import memory_diff
from maiprof_nb.analysis.memory_peak import memory_peak
from maiprof_nb.analysis.metrics import metric_series, metric_summary
from maiprof_nb.analysis.operator_ranking import operator_ranking
from maiprof_nb.analysis.phase_steps import phase_steps
from maiprof_nb.analysis.phases import phases
from maiprof_nb.analysis.projection import project
from maiprof_nb.analysis.python_in_gaps import functions_in_gaps
from maiprof_nb.analysis.python_ranking import python_ranking
from maiprof_nb.analysis.roofline import roofline
from maiprof_nb.analysis.sm_efficiency import sm_efficiency
from maiprof_nb.analysis.step_outliers import step_outliers
from maiprof_nb.analysis.steps import steps
from maiprof_nb.analysis.synchronisations import synchronisations
from maiprof_nb.analysis.tensor_cores import tensor_cores
from maiprof_nb.analysis.utilisation import utilisation

__all__ = [
    "aligned",
    "breakdown",
    "callees",
    "callers",
    "compare",
    "estimate_offset",
    "functions_in_gaps",
    "gap_causes",
    "gaps",
    "generation",
    "generation_stages",
    "icicle",
    "idle_by_cause",
    "job_states",
    "kernel_ranking",
    "launch_bound_operators",
    "launch_queue",
    "launch_rate",
    "live_at",
    "memory_curve",
    "memory_diff",
    "memory_peak",
    "metric_series",
    "metric_summary",
    "operator_ranking",
    "phase_steps",
    "phases",
    "project",
    "python_ranking",
    "roofline",
    "sm_efficiency",
    "step_outliers",
    "steps",
    "synchronisations",
    "tensor_cores",
    "utilisation",
]
