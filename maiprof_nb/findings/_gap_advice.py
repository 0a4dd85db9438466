"""What each cause of a gap means, and what to try."""

from __future__ import annotations

SCATTERED = (
    "No single function holds the gaps: many short calls follow one another and the GPU waits "
    "for each launch (launch-bound), or waits in places that differ from step to step.",
    "Give each launch more work: a larger batch, torch.compile, or CUDA graphs.",
)
OTHER = (
    "This is what ran during the gaps; it is their likely, not their proven, cause.",
    "Move this work out of the training loop, or do it ahead in another thread.",
)
RECORD_STACKS = " Record again with torch.profiler.profile(with_stack=True) for the Python lines."
ADVICE = {
    "input": (
        "The host prepares input and the GPU waits for it: the job is input-bound.",
        "Set num_worker_threads (or num_workers of the DataLoader) to what the host's cores "
        "allow, and prefetch the next sub-dataset while this one is worked through. Size of the "
        "change: 1 line.",
    ),
    "synchronisation": (
        "The host waited for the GPU first (a copy to the host, .item(), a synchronisation), so "
        "nothing was queued, and then the GPU waited for the host's next launch.",
        "Take .item(), .cpu() and synchronisations out of the loop, or do them once in many "
        "steps; copy from pinned memory with non_blocking=True.",
    ),
    "allocator": (
        "The host asks the driver for memory or gives it back, which no launch can pass.",
        "Take torch.cuda.empty_cache() out of the loop, keep sizes the same from step to step, "
        "or set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
    ),
    "collective wait": (
        "The host waits in a collective: for other ranks, or for the network.",
        "Look at which rank comes last to it, and start the communication earlier "
        "(asynchronously, or in buckets beside the backward pass).",
    ),
    "compilation": (
        "The host compiles or loads kernels; it does so once for each new shape or function.",
        "Warm up before recording; if it goes on, keep shapes the same or mark them dynamic.",
    ),
    "garbage collection": (
        "Python collects garbage, and every thread stands still.",
        "gc.freeze() after the first steps, and gc.collect() by hand every so many steps.",
    ),
    "launch-bound": (
        "The host is in operators and launch calls all the while: it launches more slowly than "
        "the GPU works (launch-bound).",
        "Give each launch more work: a larger batch, torch.compile, or CUDA graphs.",
    ),
    "already launched": (
        "The work that ends the gaps had been launched before they began: the GPU waits for "
        "itself (one stream for another, the nodes of a graph), not for the host.",
        "Look at the streams in the timeline; what the host does meanwhile is no cause.",
    ),
}
