"""Use of the device by launch configurations and names, binned by hand."""

from __future__ import annotations

import numpy as np
import pytest

from maiprof_nb.analysis.kernel_use import (
    NAME_UNDECIDED,
    OCCUPANCY,
    SM_EFFICIENCY,
    TENSOR_CORES,
    kernel_use,
)
from maiprof_nb.analysis.sm_efficiency import sm_efficiency
from maiprof_nb.timebase import TimeWindow
from tests import tiny_traces as tiny
from tests.shipped_samples import loaded

US = 1_000
TENSOR, PLAIN = "volta_h884gemm_64x128_ldg8_nn", "volta_sgemm_128x32_nn"


def kernel(ts: float, dur: float, blocks: float, occupancy: float, **more: object) -> tiny.Event:
    said = {"blocks per SM": blocks, "est. achieved occupancy %": occupancy}
    return tiny.kernel(ts, dur, **said, **more)


def values(session: tiny.Session, what: str, window: TimeWindow, bins: int) -> list[float]:
    found = kernel_use(session, window=window, bins=bins)
    rows = found[found["what"] == what]
    assert rows["dur_ns"].sum() == window.dur_ns
    return rows["value"].tolist()


def of_100_us(session: tiny.Session) -> TimeWindow:
    start = int(session.table("kernels")["ts_ns"].min())
    return TimeWindow(start, start + 100 * US)


def test_a_bin_holds_the_integral_of_what_runs_in_it():
    """Level 0.5 for 10 us, 1.3 (capped at 1) for 10, 0.8 for 10, then nothing for 70.

    In bins of 25 us: (5 + 10 + 4) / 25, 4 / 25 (5 us of 0.8), nothing, nothing.
    """
    session = tiny.session(kernel(1000, 20, 0.5, 40), kernel(1010, 20, 0.8, 20, stream=8))
    window = of_100_us(session)
    found = values(session, SM_EFFICIENCY, window, 4)
    assert found == pytest.approx([19 / 25, 4 / 25, 0, 0], abs=1e-12)


def test_occupancy_is_a_mean_over_the_running_kernels():
    """By kernel time: 20 us of 40 % and 15 of 20 % in the first bin, 5 of 20 % in the second."""
    session = tiny.session(kernel(1000, 20, 0.5, 40), kernel(1010, 20, 0.8, 20, stream=8))
    found = values(session, OCCUPANCY, of_100_us(session), 4)
    assert found[:2] == pytest.approx([(20 * 0.4 + 15 * 0.2) / 35, 0.2])
    assert np.isnan(found[2:]).all()  # no kernel, no mean


def test_a_window_may_begin_and_end_inside_a_kernel():
    session = tiny.session(kernel(1000, 100, 0.5, 40))
    start = of_100_us(session).start_ns
    window = TimeWindow(start + 10 * US, start + 30 * US)
    assert values(session, SM_EFFICIENCY, window, 2) == pytest.approx([0.5, 0.5])
    assert values(session, OCCUPANCY, window, 2) == pytest.approx([0.4, 0.4])


def test_time_in_tensor_core_kernels_by_name():
    """Two that overlap count once: 30 of the first 50 us; the unnamed one has 10 of the second."""
    session = tiny.session(
        tiny.kernel(1000, 20, name=TENSOR),
        tiny.kernel(1010, 20, name=TENSOR, stream=8),
        tiny.kernel(1030, 20, name=PLAIN),
        tiny.kernel(1060, 10, name="mystery"),
    )
    window = of_100_us(session)
    assert values(session, TENSOR_CORES, window, 2) == [0.6, 0]
    assert values(session, NAME_UNDECIDED, window, 2) == [0, 0.2]
    what = set(kernel_use(session)["what"])
    assert what == {TENSOR_CORES, NAME_UNDECIDED}  # nobody said blocks or occupancy


def test_each_device_has_its_own():
    session = tiny.session(kernel(1000, 10, 0.5, 40), kernel(1000, 10, 0.25, 40, device=1))
    found = kernel_use(session, bins=1)
    of = found[found["what"] == SM_EFFICIENCY].set_index("series")["value"]
    assert of["GPU 0"] == pytest.approx(2 * of["GPU 1"])


def test_copies_alone_are_no_kernels():
    assert kernel_use(tiny.session(tiny.memcpy(1000, 5))).empty


@pytest.mark.xdist_group("simulated samples")
def test_bins_add_up_to_the_figure_of_the_window():
    session = loaded("before")
    (row,) = sm_efficiency(session).to_dict("records")
    found = kernel_use(session, bins=997)
    found = found[found["what"] == SM_EFFICIENCY]
    used = (found["value"] * found["dur_ns"]).sum()
    assert used == pytest.approx(row["est_sm_efficiency"] * row["window_ns"], rel=2e-3)
