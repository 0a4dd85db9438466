"""What the figures mean: verdicts in words, each with its evidence."""

from __future__ import annotations

from maiprof_nb.findings.generation import generation_verdict, work_verdict
from maiprof_nb.findings.gpu_metrics import metrics_verdict
from maiprof_nb.findings.memory import (
    memory_fit_verdict,
    memory_fragmentation_verdict,
    memory_leak_verdict,
    memory_sawtooth_verdict,
    memory_shape_verdict,
)
from maiprof_nb.findings.python_while_idle import python_verdict
from maiprof_nb.findings.training_loop import loop_verdict
from maiprof_nb.findings.utilisation import utilisation_verdict
from maiprof_nb.findings.verdict import Verdict

__all__ = [
    "Verdict",
    "generation_verdict",
    "loop_verdict",
    "memory_fit_verdict",
    "memory_fragmentation_verdict",
    "memory_leak_verdict",
    "memory_sawtooth_verdict",
    "memory_shape_verdict",
    "metrics_verdict",
    "python_verdict",
    "utilisation_verdict",
    "work_verdict",
]
