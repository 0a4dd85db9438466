"""Tensor Core time by kernels' names beside what was measured, a row a device."""

from __future__ import annotations

from typing import Any

import ipywidgets
import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.analysis.tensor_cores_measured import NAMES_SAY_MORE, tensor_cores_measured
from maiprof_nb.session import Session
from maiprof_widgets import escaping
from maiprof_widgets.views._grid import grid
from maiprof_widgets.views.status import StatusLine

MAX_ROWS = 64
_HEAD = (
    "Device",
    "Kernel time",
    "Tensor Core kernels, by name",
    "Name decides nothing",
    "Matrix operators",
    "of them on Tensor Cores",
    "Tensor Core activity, measured",
)


class TensorCoresView(ipywidgets.VBox):
    """A table of `maiprof_nb.analysis.tensor_cores_measured.tensor_cores_measured`.

    Parameters
    ----------
    session : Session
        What to show.

    Attributes
    ----------
    found : DataFrame
        The rows shown; empty where it cannot be answered.
    """

    def __init__(self, session: Session) -> None:
        self.status = StatusLine()
        self.found = pd.DataFrame()
        shown: list[ipywidgets.Widget] = []
        with self.status.guard():
            self.found = tensor_cores_measured(session)
            rows = list(self.found.head(MAX_ROWS).itertuples())
            said = [*map(_sentence, rows), f"Over {figure_window(session).reason}."]
            if len(self.found) > len(rows):
                said.append(f"{len(self.found) - len(rows)} more devices are not shown.")
            if self.found["measured_activity"].isna().all():
                said.append(
                    "Nothing was measured: sample DCGM_FI_PROF_PIPE_TENSOR_ACTIVE beside the job."
                )
            words = "".join(f"<div>{escaping.text(text)}</div>" for text in said if text)
            table = grid(_HEAD, map(_cells, rows))
            shown = [ipywidgets.HTML(f'{table}<div class="maiprof-sources">{words}</div>')]
        super().__init__([*shown, self.status])


def _cells(row: Any) -> list[str]:
    activity = row.measured_activity
    return [
        _name(row),
        units.duration(row.kernel_ns),
        units.percent(row.tensor_core_share),
        units.percent(row.undecided_share),
        units.duration(row.eligible_ns),
        units.percent(row.eligible_share),
        "not measured" if pd.isna(activity) else units.percent(activity),
    ]


def _name(row: Any) -> str:
    device = "device" if pd.isna(row.device) else f"GPU {row.device}"
    return device if pd.isna(row.rank) else f"rank {row.rank}, {device}"


def _sentence(row: Any) -> str:
    if not row.disagreement:
        return ""
    named = units.percent(row.tensor_core_ns / row.window_ns)
    why = (
        "The kernels wait for something else, such as memory, or the sampler watched another GPU."
        if row.disagreement == NAMES_SAY_MORE
        else "Kernels that use Tensor Cores go by other names, or another job shares the GPU."
    )
    return (
        f"{_name(row)}: by name Tensor Core kernels run {named} of the time, but "
        f"{units.percent(row.measured_activity)} activity was measured. {why}"
    )
