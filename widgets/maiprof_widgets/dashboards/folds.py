"""What a dashboard shows only when someone opens it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import ipywidgets

from maiprof_nb.analysis.active_memory import memory_devices
from maiprof_nb.analysis.generation import generates
from maiprof_nb.session import Session
from maiprof_widgets.link import LinkState
from maiprof_widgets.views.allocations_made import AllocationsMade
from maiprof_widgets.views.allocator_state import AllocatorStateView
from maiprof_widgets.views.folded import FoldedView
from maiprof_widgets.views.fragmentation import FragmentationView
from maiprof_widgets.views.gaps import GapsView
from maiprof_widgets.views.icicle import IcicleView
from maiprof_widgets.views.launches import LaunchesView
from maiprof_widgets.views.loop import LoopView
from maiprof_widgets.views.memory import MemoryView
from maiprof_widgets.views.memory_diff import MemoryDiffView
from maiprof_widgets.views.memory_peak import MemoryPeakView
from maiprof_widgets.views.metrics import MetricsView
from maiprof_widgets.views.roofline import RooflineView
from maiprof_widgets.views.trust import TrustLine


@dataclass(frozen=True)
class Fold:
    """Views that are made at their first opening.

    Parameters
    ----------
    key : str
        Which one it is, whatever its title.
    title : str
        What it shows.
    makers : tuple of callable
        Each makes a part, from top to bottom.
    opened : bool
        Open from the start.
    """

    key: str
    title: str
    makers: tuple[Callable[[], ipywidgets.Widget], ...]
    opened: bool = False

    def view(self, *, opened: bool) -> FoldedView:
        """The button, with what it holds beneath it if open."""
        return FoldedView(self.title, *self.makers, opened=opened or self.opened)


def step_folds(session: Session, link: LinkState) -> list[Fold]:
    """Views of the steps of the workflow, in their order, where the recordings can show them."""
    work, host = (not session.table(name).empty for name in ("kernels", "operators"))
    return [
        *([_idle(session, link)] if work else []),
        *_metrics(session, link),
        *([_roofline(session, link)] if work and host else []),
        *([_loop(session, link)] if host else []),
        *([_launches(session, link)] if work else []),
    ]


def memory_folds(session: Session, link: LinkState, memory: MemoryView) -> list[Fold]:
    """Views of memory beside its timeline, where there is one."""
    if memory.device is None:
        return []
    snapshots = any(recording.kind == "snapshot" for recording in session.recordings)
    made = Fold(
        "made",
        "Memory: allocations made in the time shown",
        (lambda: AllocationsMade(memory),),
    )
    moments = all(device.axis == "state" for device in memory_devices(session))
    return [
        *([] if moments else [made]),
        Fold(
            "peak",
            "Memory: who held it" if moments else "Memory: who held it at the peak",
            (lambda: MemoryPeakView(session, link), lambda: TrustLine(session, "memory-peak")),
        ),
        *([_segments(session, link, moments=moments)] if snapshots else []),
        Fold(
            "growth",
            "Memory: what grew between two moments",
            (lambda: MemoryDiffView(session, link),),
        ),
    ]


def _segments(session: Session, link: LinkState, *, moments: bool) -> Fold:
    if moments:
        return Fold(
            "segments",
            "Memory: the allocator's segments",
            (lambda: AllocatorStateView(session, link),),
        )
    return Fold(
        "segments",
        "Memory: the allocator's segments at a moment, and fragmentation over time",
        (lambda: AllocatorStateView(session, link), lambda: FragmentationView(session, link)),
    )


def _idle(session: Session, link: LinkState) -> Fold:
    return Fold(
        "idle",
        "Step 2: what the host does while the GPU idles (call paths, gap by gap)",
        (
            lambda: IcicleView(session, link),
            lambda: GapsView(session, link),
            lambda: TrustLine(session, "gaps", "python-in-gaps"),
        ),
    )


def _metrics(session: Session, link: LinkState) -> list[Fold]:
    """What samplers measured, open where there is nothing else; or what the trace says of it."""
    sampled = not session.table("counters").empty
    kinds = session.table("kernels")["kind"]
    if not sampled and not kinds.isin(["compute", "communication"]).any():
        return []
    title = (
        "Step 3: GPU metrics beside the job (sampled)"
        if sampled
        else "Step 3: SM efficiency, occupancy and Tensor Cores (from the trace)"
    )
    return [
        Fold(
            "metrics",
            title,
            (
                lambda: MetricsView(session, link),
                lambda: TrustLine(session, "metrics" if sampled else "gpu-utilisation"),
            ),
            opened=all(recording.kind == "metrics" for recording in session.recordings),
        )
    ]


def _roofline(session: Session, link: LinkState) -> Fold:
    return Fold(
        "roofline",
        "Step 3: roofline of matrix products, convolutions and attention",
        (
            lambda: RooflineView(session, link),
            lambda: TrustLine(session, "operator-device-times"),
        ),
    )


def _loop(session: Session, link: LinkState) -> Fold:
    made = generates(session)
    return Fold(
        "loop",
        "Step 4: prefill and decode" if made else "Step 4: the training loop, by phase and step",
        (lambda: LoopView(session, link), lambda: TrustLine(session, "phases")),
    )


def _launches(session: Session, link: LinkState) -> Fold:
    return Fold(
        "launches",
        "Step 4: launches, their queue, and launch-bound operators",
        (lambda: LaunchesView(session, link), lambda: TrustLine(session, "gpu-utilisation")),
    )
