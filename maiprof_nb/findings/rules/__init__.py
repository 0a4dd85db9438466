"""The rules: one fault a module, gathered in ``RULES``."""

from __future__ import annotations

from maiprof_nb.findings.rule import Rule
from maiprof_nb.findings.rules import (
    allocator_churn,
    exposed_communication,
    few_data_workers,
    fp32_matmul,
    garbage_collection,
    hidden_sync,
    input_bound,
    launch_bound,
    low_sm_activity,
    memory_headroom,
    misaligned_dims,
    no_tensor_cores,
    pageable_copies,
    periodic_reload,
    profiler_overhead,
    recompilation,
    redundant_copies,
    single_tensor_optimizer,
    slow_step,
    small_kernels,
    throttling,
)

RULES: tuple[Rule, ...] = tuple(
    module.RULE
    for module in (
        allocator_churn,
        exposed_communication,
        few_data_workers,
        fp32_matmul,
        garbage_collection,
        hidden_sync,
        input_bound,
        launch_bound,
        low_sm_activity,
        memory_headroom,
        misaligned_dims,
        no_tensor_cores,
        pageable_copies,
        periodic_reload,
        profiler_overhead,
        recompilation,
        redundant_copies,
        single_tensor_optimizer,
        slow_step,
        small_kernels,
        throttling,
    )
)
