"""What samplers measured of the GPU, over time."""

from __future__ import annotations

import pandas as pd

from maiprof_nb.analysis.metrics import metric_series
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets.figures.metrics import metric_panels
from maiprof_widgets.figures.panels import Panel
from maiprof_widgets.views.curves import BINS, CurvesView


class MetricsView(CurvesView):
    """Reads ``link.window`` and ``link.dark``; sets ``link.window``."""

    def panels(self, window: TimeWindow) -> list[Panel]:
        """One panel a quantity."""
        series: pd.DataFrame = metric_series(self.session, window=window, bins=BINS)
        made = metric_panels(series, self.session.table("counters"))
        if not made:
            raise NotAnswerableError(
                "no GPU metrics were loaded with this recording",
                remedy="Record them beside the job, for example with nvidia-smi "
                "--query-gpu=timestamp,index,utilization.gpu,memory.used,power.draw "
                "--format=csv -l 1 > gpu.csv, and load the folder",
            )
        return made
