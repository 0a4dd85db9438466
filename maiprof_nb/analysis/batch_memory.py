"""How many bytes of device memory one more sample of the batch takes."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd

from maiprof_nb.analysis._device_peaks import device_peak
from maiprof_nb.analysis.active_memory import MemoryLog
from maiprof_nb.analysis.memory_peak import OPTIMIZER
from maiprof_nb.analysis.steps import steps
from maiprof_nb.session import Session

# The first layer's operator, and which of its inputs is the batch.
_LAYERS = {
    "aten::embedding": 1,
    "aten::embedding_bag": 1,
    "aten::linear": 0,
    "aten::addmm": 1,
    "aten::mm": 0,
    "aten::matmul": 0,
    "aten::conv1d": 0,
    "aten::conv2d": 0,
    "aten::conv3d": 0,
    "aten::convolution": 0,
}
MEASURED, READ_OFF = "steps of different size", "what comes and goes at the peak"
LEAST_STEPS = 4  # with two sizes among them: fewer pairs of steps are no measurement
A_STEP = 1.5  # of the median step: what lives longer does not belong to one batch
_STAYS = ("parameters", "gradients", "optimizer state")  # as large whatever the batch is


@dataclass(frozen=True)
class BatchMemory:
    """Bytes a sample, of one device.

    Parameters
    ----------
    batch : int
        Samples in a step: the leading dimension of the first layer's input. For a model that
        is given flattened tokens it counts tokens. The largest where steps differ.
    bytes_per_sample, low_bytes, high_bytes : float
        What one more takes, and the range: of the slopes between steps (quartiles), or from
        activations alone to all that comes and goes in the step that has the peak.
    how : str
        `MEASURED` (peaks of steps over their sizes) or `READ_OFF` (what is live at the peak, lives
        no longer than a step, and is no parameter, gradient or optimizer state, over the size).
    sizes : DataFrame
        ``step, batch, peak_bytes`` of each step.
    """

    batch: int
    bytes_per_sample: float
    low_bytes: float
    high_bytes: float
    how: str
    sizes: pd.DataFrame


def batch_memory(session: Session, log: MemoryLog) -> BatchMemory | None:
    """Bytes a sample by the steps of a trace beside the memory log.

    Returns
    -------
    BatchMemory or None
        None without steps, shapes of inputs, or memory that comes and goes in a step.

    Notes
    -----
    Linear in the batch is an assumption: workspaces of libraries and the rounding of blocks are
    not, and where a sample's length varies, so does what it takes.
    """
    if log.device.axis != "time":
        return None
    marks = steps(session)
    if log.device.rank is not None:
        marks = marks[marks["rank"] == log.device.rank]
    sizes = batch_sizes(session, marks)
    if sizes.empty:
        return None
    inside = (sizes["ts_ns"] >= log.span.start_ns) & (sizes["end_ns"] <= log.span.end_ns)
    peaks = _peaks(log, sizes[inside])
    usual = float(sizes["end_ns"].sub(sizes["ts_ns"]).median())
    if len(peaks) >= LEAST_STEPS and peaks["batch"].min() < peaks["batch"].max():
        slope = _slopes(peaks)
        if slope[1] > 0:
            return BatchMemory(int(peaks["batch"].max()), *slope, MEASURED, peaks)
    low, all_of_it = _passing(session, log, usual)
    if all_of_it <= 0:
        return None
    batch = int(sizes["batch"].median())
    each = all_of_it / batch
    return BatchMemory(batch, each, low / batch, each, READ_OFF, peaks)


def batch_sizes(session: Session, marks: pd.DataFrame) -> pd.DataFrame:
    """Samples of each step, by the first layer's input: ``step, ts_ns, end_ns, batch``.

    Steps without such an operator, or without its shapes, are left out.
    """
    operators = session.table("operators")
    names = operators["name"].cat.categories
    rows = operators[operators["name"].isin(names[names.isin(list(_LAYERS))])]
    rows = rows[rows["input_dims"].notna()].sort_values("ts_ns", kind="stable")
    found = []
    for recording, every in marks.groupby("recording"):
        mine = rows[rows["recording"] == recording]
        first = np.searchsorted(mine["ts_ns"].to_numpy(np.int64), every["ts_ns"].to_numpy(np.int64))
        of, layer = every[first < len(mine)], mine.iloc[first[first < len(mine)]]
        table = of[["step", "ts_ns"]].assign(end_ns=of["ts_ns"] + of["dur_ns"])
        table["batch"] = [
            _leading(str(name), str(dims))
            for name, dims in zip(layer["name"], layer["input_dims"], strict=True)
        ]
        found.append(table[layer["ts_ns"].to_numpy() < table["end_ns"].to_numpy()])
    if not found:
        return pd.DataFrame(columns=["step", "ts_ns", "end_ns", "batch"], dtype="int64")
    table = pd.concat(found).sort_values("ts_ns", ignore_index=True)
    return table[table["batch"] > 0].reset_index(drop=True)


def _leading(name: str, dims: str) -> int:
    """Leading dimension of the layer's input; 0 where the shapes do not say."""
    try:
        shapes = json.loads(dims)
        return int(shapes[_LAYERS[name]][0])
    except (ValueError, TypeError, IndexError, KeyError):
        return 0


def _peaks(log: MemoryLog, sizes: pd.DataFrame) -> pd.DataFrame:
    first = log.states_at(sizes["ts_ns"].to_numpy(np.int64))
    end = log.states_at(sizes["end_ns"].to_numpy(np.int64)) + 1
    most = [log.allocated_bytes[a:b].max() for a, b in zip(first, end, strict=True)]
    return sizes[["step", "batch"]].assign(peak_bytes=np.array(most, dtype=np.int64))


def _slopes(peaks: pd.DataFrame) -> tuple[float, float, float]:
    """Median and quartiles of the slopes between steps of different size."""
    batch, peak = (peaks[name].to_numpy(np.float64) for name in ("batch", "peak_bytes"))
    one, other = np.triu_indices(len(peaks), 1)
    apart = batch[one] != batch[other]
    one, other = one[apart], other[apart]
    slopes = (peak[other] - peak[one]) / (batch[other] - batch[one])
    low, middle, high = np.quantile(slopes, [0.25, 0.5, 0.75])
    return float(middle), float(low), float(high)


def _passing(session: Session, log: MemoryLog, step_ns: float) -> tuple[float, float]:
    """Bytes at the peak that come and go in a step: activations, and all of them."""
    live = device_peak(session, log).live
    lasts = (live["end_ns"] - live["ts_ns"]).astype("Float64")
    goes = (live["fate"] == "freed") & lasts.le(A_STEP * step_ns).fillna(value=False)
    goes &= ~live["before_log"].astype(bool) & ~live["category"].isin(_STAYS)
    goes &= live["phase"].astype(object).ne(OPTIMIZER).fillna(value=True)
    activations = goes & live["category"].eq("activations")
    size = live["size_bytes"]
    return float(size[activations.to_numpy(bool)].sum()), float(size[goes.to_numpy(bool)].sum())
