"""Tensor-core time by kernels' names beside the activity that a sampler measured."""

from __future__ import annotations

import numpy as np
import pandas as pd

from maiprof_nb.analysis.measured import measured
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.analysis.tensor_cores import tensor_cores
from maiprof_nb.session import Session

ASLEEP = 0.01  # measured activity, of the window
NAMED = 0.1  # of the window in tensor-core kernels; they would show up in what is measured
AWAKE = 0.02  # measured activity that is more than noise
TWICE = 2.0  # as much as names allow: samples and window need not end together

NAMES_SAY_MORE, MEASURED_MORE = "names say more", "measured more"


def tensor_cores_measured(session: Session) -> pd.DataFrame:
    """`tensor_cores` with the measured activity of each device, and where they contradict.

    Returns
    -------
    DataFrame
        The rows of `maiprof_nb.analysis.tensor_cores.tensor_cores` with ``window_ns``,
        ``measured_activity`` (0 to 1: mean over the window of the figures of what a sampler
        called tensor activity; missing where no sampler watched the device) and
        ``disagreement``: ``names say more`` (tensor-core kernels fill a tenth of the window,
        yet less than 1 % was measured), ``measured more`` (at least 2 % was measured, twice
        the share of the window that tensor-core and undecided kernels fill), or empty.

    Raises
    ------
    NotAnswerableError
        If no device work was recorded.

    Notes
    -----
    Devices are matched by their number. Measured activity counts idle time and is the share of
    cycles in which the cores work, so that it is well below the share by name in the best of
    cases; it cannot be above it.
    """
    found = tensor_cores(session)
    window = figure_window(session).window.dur_ns
    by_device = measured(session, "tensor activity").groupby("device", observed=True)["mean"]
    means = {str(device): float(mean) for device, mean in by_device.mean().items()}
    activity = found["device"].astype("str").map(means).astype("float64")
    yes = found["tensor_core_ns"] / max(window, 1)
    maybe = yes + found["undecided_ns"] / max(window, 1)
    return found.assign(
        window_ns=window,
        measured_activity=activity,
        disagreement=np.select(
            [
                (activity < ASLEEP) & (yes >= NAMED),
                (activity >= AWAKE) & (activity >= TWICE * maybe),
            ],
            [NAMES_SAY_MORE, MEASURED_MORE],
            "",
        ),
    )
