"""The rules: one fault a module, gathered in ``RULES``."""

from __future__ import annotations

from maiprof_nb.findings.rule import Rule
from maiprof_nb.findings.rules import (
    allocator_churn,
    allocator_thrash,
    exposed_communication,
    few_data_workers,
    fp32_matmul,
    fragmentation,
    garbage_collection,
    hidden_sync,
    input_bound,
    late_snapshot,
    launch_bound,
    low_sm_activity,
    memory_headroom,
    memory_leak,
    memory_sawtooth,
    misaligned_dims,
    no_tensor_cores,
    oom,
    over_reservation,
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
        allocator_thrash,
        exposed_communication,
        few_data_workers,
        fp32_matmul,
        fragmentation,
        garbage_collection,
        hidden_sync,
        input_bound,
        late_snapshot,
        launch_bound,
        low_sm_activity,
        memory_headroom,
        memory_leak,
        memory_sawtooth,
        misaligned_dims,
        no_tensor_cores,
        oom,
        over_reservation,
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
