"""The rules: one fault a module, gathered in ``RULES``."""

from __future__ import annotations

from maiprof_nb.findings.rule import Rule
from maiprof_nb.findings.rules import (
    allocator_churn,
    few_data_workers,
    garbage_collection,
    hidden_sync,
    input_bound,
    launch_bound,
    periodic_reload,
    profiler_overhead,
    recompilation,
    single_tensor_optimizer,
    slow_step,
    small_kernels,
)

RULES: tuple[Rule, ...] = tuple(
    module.RULE
    for module in (
        allocator_churn,
        few_data_workers,
        garbage_collection,
        hidden_sync,
        input_bound,
        launch_bound,
        periodic_reload,
        profiler_overhead,
        recompilation,
        single_tensor_optimizer,
        slow_step,
        small_kernels,
    )
)
