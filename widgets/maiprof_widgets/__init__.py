"""Linked views of a `maiprof_nb.Session` for JupyterLab and Voila."""

from __future__ import annotations

from maiprof_widgets.dashboards.memory import MemoryDashboard
from maiprof_widgets.dashboards.opening import open_chosen, sample_path
from maiprof_widgets.dashboards.overview import Overview
from maiprof_widgets.dashboards.start import StartPage
from maiprof_widgets.link import LinkState, Selection
from maiprof_widgets.views.allocator_state import AllocatorStateView
from maiprof_widgets.views.breakdown import BreakdownView
from maiprof_widgets.views.findings import FindingsView
from maiprof_widgets.views.fragmentation import FragmentationView
from maiprof_widgets.views.gap_functions import GapFunctionsView
from maiprof_widgets.views.gaps import GapsView
from maiprof_widgets.views.generation import GenerationView
from maiprof_widgets.views.icicle import IcicleView
from maiprof_widgets.views.job_states import JobStatesView
from maiprof_widgets.views.launches import LaunchesView
from maiprof_widgets.views.loop import LoopView
from maiprof_widgets.views.memory import MemoryView
from maiprof_widgets.views.memory_diff import MemoryDiffView
from maiprof_widgets.views.memory_peak import MemoryPeakView
from maiprof_widgets.views.metric_figures import MetricFiguresView
from maiprof_widgets.views.metrics import MetricsView
from maiprof_widgets.views.page import PageView
from maiprof_widgets.views.phase_steps import PhaseStepsView
from maiprof_widgets.views.phases import PhasesView
from maiprof_widgets.views.ranking import RankingView
from maiprof_widgets.views.roofline import RooflineView
from maiprof_widgets.views.tensor_cores import TensorCoresView
from maiprof_widgets.views.utilisation import UtilisationView
from maiprof_widgets.views.verdict import VerdictView

__all__ = [
    "AllocatorStateView",
    "BreakdownView",
    "FindingsView",
    "FragmentationView",
    "GapFunctionsView",
    "GapsView",
    "GenerationView",
    "IcicleView",
    "JobStatesView",
    "LaunchesView",
    "LinkState",
    "LoopView",
    "MemoryDashboard",
    "MemoryDiffView",
    "MemoryPeakView",
    "MemoryView",
    "MetricFiguresView",
    "MetricsView",
    "Overview",
    "PageView",
    "PhaseStepsView",
    "PhasesView",
    "RankingView",
    "RooflineView",
    "Selection",
    "StartPage",
    "TensorCoresView",
    "UtilisationView",
    "VerdictView",
    "open_chosen",
    "sample_path",
]
