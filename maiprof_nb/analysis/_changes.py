"""What a change to a job does to the durations of its schedule, in three cases.

Each function edits `Durations` in place for the least, the expected or the greatest gain. Every
duration falls from one case to the next, so that the replayed windows are ordered, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis._host_pieces import (
    FRAMEWORK,
    OPTIMIZER,
    PARALLEL,
    REST,
    SERIAL,
    loading_of,
    worker_busy,
)
from maiprof_nb.analysis._intervals import Union, minus, overlap, union
from maiprof_nb.analysis._matmul_kernels import half_precision_factors
from maiprof_nb.analysis._schedule_host import LAUNCH
from maiprof_nb.analysis.phases import PHASES, phase_calls
from maiprof_nb.analysis.schedule import Durations, Schedule
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.session import Session

FLOOR, EXPECTED, CEILING = range(3)
_SMALLEST_NS = 5_000.0  # no kernel needs longer for doing nothing
_USUAL_INCREASE = 4  # times as many workers, where the host's cores are not known
_SCALAR_READS = re.compile(
    r"aten::(?:item|_local_scalar_dense|is_nonzero|nonzero|masked_select|unique\w*)$"
)
_CONSTANT_COLLECTIVES = re.compile(
    r"all_?reduce|reduce_?scatter|all_?gather|broadcast", re.IGNORECASE
)


@dataclass(frozen=True)
class Case:
    """The schedule with what changes need to know of it."""

    session: Session
    schedule: Schedule
    name: pd.Series
    kind: pd.Series
    blocks_per_sm: npt.NDArray[np.float64]
    phase: npt.NDArray[np.int64]
    cores: int | None

    @cached_property
    def loading(self) -> Union:
        """When the loop's thread loads data."""
        found = loading_of(self.session, self.schedule.recording, self.schedule.main_thread)
        if len(found.start_ns) == 0:
            raise NotAnswerableError(
                "no data loading was recorded on the training thread",
                remedy="Record with_stack=True, or load data through a DataLoader",
            )
        return found

    @property
    def smallest_ns(self) -> float:
        """What a kernel that does nothing takes, by the shortest ones."""
        dur = self.schedule.work.dur_ns
        return min(float(np.percentile(dur, 1)), _SMALLEST_NS) if len(dur) else 0.0


def case_of(session: Session, schedule: Schedule, cores: int | None) -> Case:
    """Gather what the changes need."""
    work = session.table("kernels")
    work = work[work["recording"] == schedule.recording].iloc[schedule.work.row]
    blocks = work["blocks_per_sm"].astype("Float64").to_numpy(np.float64, na_value=np.nan)
    return Case(
        session,
        schedule,
        work["name"].astype("str"),
        work["kind"].astype("str"),
        blocks,
        _phase_of_work(session, schedule),
        cores,
    )


def less_input(case: Case, d: Durations, bound: int) -> Durations:
    """More workers decode the input.

    At least: only while workers were recorded busy, with half of the additional workers of
    use. Expected: that time divided among all. At most: all input beside the training.
    """
    count, busy = _workers(case)
    if bound == CEILING:
        d.host_ns[:, [PARALLEL, SERIAL]] = 0
        return d
    target = max(case.cores or count * _USUAL_INCREASE, count)
    if bound == FLOOR:
        target = count + (target - count) // 2
    d.host_ns[:, PARALLEL] *= (1 - busy) + busy * count / target
    return d


def larger_batch(case: Case, d: Durations, bound: int) -> Durations:
    """Twice the rows in a step: half as many steps.

    Device time of a row is constant; the optimizer works once a step. At least: all input and
    unnamed host time doubles. At most: only workers' time does, and kernels with less than one
    block for each multiprocessor take no longer.
    """
    d.host_ns[:, PARALLEL] *= 2
    d.host_ns[:, SERIAL] *= (2.0, 1.5, 1.0)[bound]
    d.host_ns[:, REST] *= (2.0, 1.0, 1.0)[bound]
    per_row = case.phase != PHASES.index("optimizer")
    small = case.blocks_per_sm < 1
    per_row &= ~(small & (bound != FLOOR))
    constant = case.name.str.contains(_CONSTANT_COLLECTIVES).to_numpy()
    per_row &= ~((case.kind == "communication").to_numpy() & constant & (bound != FLOOR))
    fixed = 0.0 if bound == FLOOR else case.smallest_ns
    d.work_ns[per_row] += np.maximum(d.work_ns[per_row] - fixed, 0)
    return replace(d, rows=d.rows * 2)


def mixed_precision(case: Case, d: Durations, bound: int) -> Durations:
    """Matrix products in half precision, with the conversions that takes.

    At least: twice as fast, and one conversion each. Expected: the geometric mean of that and
    the peak, and half of the conversions. At most: the device's peak, and all pointwise kernels
    of the model on half the bytes.
    """
    meta = case.session.recordings[case.schedule.recording].meta
    eligible, factors = half_precision_factors(case.name, meta)
    if not eligible.any():
        raise NotAnswerableError(
            "no kernel of the window multiplies matrices in single precision",
            remedy="Mixed precision has nothing to make faster here",
        )
    model = np.isin(case.phase, [PHASES.index("forward"), PHASES.index("backward")])
    pointwise = model & ~eligible & (case.kind == "compute").to_numpy()
    was = d.work_ns.copy()
    d.work_ns[:] = was / factors[:, bound]
    cast = np.percentile(was[pointwise], 75) if pointwise.any() else 0.0
    share = (1.0, 0.5, 0.0)[bound]
    d.work_ns[eligible] += share * np.minimum(cast, was[eligible] / 2)
    if bound == CEILING:
        fixed = np.minimum(case.smallest_ns, was[pointwise])
        d.work_ns[pointwise] = fixed + (was[pointwise] - fixed) / 2
    launch = case.schedule.work.launch[eligible]
    np.add.at(d.host_ns[:, FRAMEWORK], launch[launch >= 0], share * _usual_launch_ns(case))
    return d


def multi_tensor(case: Case, d: Durations, bound: int) -> Durations:
    """The optimizer works on all parameters with a few kernels.

    At least: half of its host time, and no device time. Expected: nine tenths, and what its
    kernels take beyond the shortest kernel, which stands for the bytes they move. At most: all
    of its host time.
    """
    mine = case.phase == PHASES.index("optimizer")
    if not mine.any():
        raise NotAnswerableError(
            "no device work was launched inside an optimizer's step",
            remedy="Record whole training steps",
        )
    d.host_ns[:, OPTIMIZER] *= (0.5, 0.1, 0.0)[bound]
    if bound != FLOOR:
        d.work_ns[mine] = np.maximum(d.work_ns[mine] - case.smallest_ns, 0)
        d.gap_ns[mine] = np.minimum(d.gap_ns[mine], 0)
    return d


def fewer_waits(case: Case, d: Durations, bound: int) -> Durations:
    """The host no longer waits for the device where a scalar is read.

    At least: it waits once at the end of each step instead. At most: it waits nowhere.
    """
    chosen = d.waits if bound == CEILING else d.waits & _in_scalar_reads(case)
    if not chosen.any():
        raise NotAnswerableError(
            "the host reads no scalar from the device in the window",
            remedy="There is no hidden wait to remove",
        )
    d.waits[chosen] = False
    return replace(d, wait_at_step_end=d.wait_at_step_end or bound == FLOOR)


def overlapped_communication(case: Case, d: Durations, bound: int) -> Durations:
    """Communication beside computation.

    At most: none of it is exposed. Expected: as much as there is computation with nothing
    beside it. At least: half of that.
    """
    talks = (case.kind == "communication").to_numpy()
    if not talks.any():
        raise NotAnswerableError(
            "the window holds no communication", remedy="There is nothing to overlap"
        )
    work = case.schedule.work
    computes = (case.kind == "compute").to_numpy()
    compute = union(work.start_ns[computes], work.end_ns[computes])
    communication = union(work.start_ns[talks], work.end_ns[talks])
    exposed = work.dur_ns[talks] - overlap(compute, work.start_ns[talks], work.end_ns[talks])
    alone = minus(compute, communication).length_ns
    fits = min(1.0, alone / max(int(exposed.sum()), 1))
    share = (0.5 * fits, fits, 1.0)[bound]
    d.work_ns[talks] = np.maximum(d.work_ns[talks] - share * exposed, 0)
    return d


def graphs(_case: Case, d: Durations, bound: int) -> Durations:
    """The model's launches are replayed by the device, without the framework.

    At least: half of the framework's host time between launches, expected nine tenths, at most
    all of it. What input, waits and the job's own Python take stays.
    """
    d.host_ns[:, FRAMEWORK] *= (0.5, 0.1, 0.0)[bound]
    return d


Change = Callable[[Case, Durations, int], Durations]
CHANGES: dict[str, Change] = {
    "input": less_input,
    "batch": larger_batch,
    "amp": mixed_precision,
    "multi-tensor": multi_tensor,
    "no-sync": fewer_waits,
    "overlap-communication": overlapped_communication,
    "graphs": graphs,
}


def assumptions(case: Case, change: str) -> list[str]:
    """What a projection of this change takes for granted."""
    said = {
        "batch": [
            "The larger batch fits into memory, and rows cost the device what they cost now."
        ],
        "amp": [
            "Factors of matrix products come from kernels' names and the device's peaks; nothing "
            "is said of accuracy."
        ],
        "overlap-communication": [
            "Collectives take as long as recorded, which includes waiting for other ranks."
        ],
    }.get(change, [])
    if change == "input":
        count, busy = _workers(case)
        said = [
            f"{count} workers, busy {units.percent(busy)} of all the time the loop waited for them."
        ]
        if not _worker_threads(case):
            said = [
                "No worker thread is recorded: one is taken, busy all the time, here or in another "
                "process."
            ]
        if case.cores is None:
            said.append(
                f"The host's cores are not in the recording: {_USUAL_INCREASE} times as many "
                "workers are taken."
            )
        else:
            said.append(f"Up to {case.cores} workers, one a core.")
    return said


def _workers(case: Case) -> tuple[int, float]:
    """Workers (1 where none is recorded), and how busy they are while the loop waits for them."""
    threads = _worker_threads(case)
    if not threads:
        return 1, 1.0
    together = union(
        np.concatenate([one.start_ns for one in threads]),
        np.concatenate([one.end_ns for one in threads]),
    )
    total = sum(one.length_ns for one in threads)
    return len(threads), min(total / (len(threads) * together.length_ns), 1.0)


def _worker_threads(case: Case) -> list[Union]:
    """When each worker thread worked while the loop was loading data."""
    session, recording = case.session, case.schedule.recording
    return list(worker_busy(session, recording, case.loading).values())


def _phase_of_work(session: Session, schedule: Schedule) -> npt.NDArray[np.int64]:
    """Phase of the launch of each piece of work."""
    calls = phase_calls(session)
    calls = calls[(calls["recording"] == schedule.recording) & (calls["kind"] == "launches")]
    by_event = pd.Series(calls["phase"].to_numpy(), index=calls["event"])
    launch = schedule.work.launch
    event = np.where(launch >= 0, schedule.points.event[np.maximum(launch, 0)], -1)
    real = schedule.points.kind[np.maximum(launch, 0)] == LAUNCH
    other = PHASES.index("other")
    found = by_event.reindex(np.where(real, event, -1)).fillna(other)
    return found.to_numpy(np.int64)


def _usual_launch_ns(case: Case) -> float:
    """Host time from one launch of the framework to the next."""
    points = case.schedule.points
    spent = case.schedule.durations.host_ns[:, FRAMEWORK][points.kind == LAUNCH]
    spent = spent[spent > 0]
    return float(np.median(spent)) if len(spent) else 0.0


def _in_scalar_reads(case: Case) -> npt.NDArray[np.bool_]:
    """Points inside an operator that reads a scalar or counts on the host."""
    operators = case.session.table("operators")
    operators = operators[operators["recording"] == case.schedule.recording]
    reads = operators[operators["name"].astype("str").str.contains(_SCALAR_READS)]
    start = reads["ts_ns"].to_numpy(np.int64)
    inside = union(start, start + reads["dur_ns"].to_numpy(np.int64))
    points = case.schedule.points
    if len(inside.start_ns) == 0:
        return np.zeros(len(points.kind), dtype=bool)
    place = np.searchsorted(inside.start_ns, points.in_ns, side="right") - 1
    return (place >= 0) & (inside.end_ns[np.maximum(place, 0)] >= points.out_ns)
