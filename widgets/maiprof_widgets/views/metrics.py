"""What samplers measured of the GPU over time, and what the trace says of the same."""

from __future__ import annotations

import ipywidgets
import pandas as pd

from maiprof_nb.analysis.kernel_use import kernel_use
from maiprof_nb.analysis.metrics import metric_series
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets.figures.kernel_use import kernel_use_panels
from maiprof_widgets.figures.metrics import metric_panels
from maiprof_widgets.figures.panels import Panel
from maiprof_widgets.views.curves import BINS, CurvesView
from maiprof_widgets.views.status import StatusLine

_FEW_DEVICES, _LEAST_BINS = 8, 100  # more devices share the bins of so many
SAMPLE = (
    "nvidia-smi --query-gpu=timestamp,index,utilization.gpu,memory.used,power.draw "
    "--format=csv -l 1 > gpu.csv"
)


class MetricsView(CurvesView):
    """Reads ``link.window`` and ``link.dark``; sets ``link.window``."""

    def beneath(self) -> list[ipywidgets.Widget]:
        """What sampling would add, where there is only a trace."""
        if not self.session.table("counters").empty:
            return []
        missing = StatusLine()
        missing.show(
            "From the trace alone. Sampling beside the job adds measured SM activity, occupancy "
            "and Tensor Core activity (DCGM), memory, power, clocks and temperature: run "
            f"{SAMPLE} (or dcgmi dmon) beside it and load the folder.",
            missing=True,
        )
        return [missing]

    def panels(self, window: TimeWindow) -> list[Panel]:
        """One panel a quantity; those from the trace beneath what they estimate."""
        counters = self.session.table("counters")
        series: pd.DataFrame = metric_series(self.session, window=window, bins=BINS)
        use = kernel_use(self.session, window=window, bins=self._bins)
        made = metric_panels(series, counters, kernel_use_panels(use))
        if not made:
            raise NotAnswerableError(
                "no GPU metrics and no device kernels were loaded with this recording",
                remedy=f"Record metrics beside the job, for example with {SAMPLE}, and load the "
                "folder",
            )
        return made

    @property
    def _bins(self) -> int:
        devices = len(self.session.table("kernels")[["recording", "device"]].drop_duplicates())
        return max(_LEAST_BINS, BINS * _FEW_DEVICES // max(devices, _FEW_DEVICES))
