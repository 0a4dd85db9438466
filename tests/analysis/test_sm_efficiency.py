"""Estimated SM efficiency and occupancy, integrated by hand."""

from __future__ import annotations

import json

import pytest

import maiprof_nb
from maiprof_nb import NotAnswerableError
from maiprof_nb.analysis.sm_efficiency import sm_efficiency, sm_efficiency_curve
from tests import tiny_traces as tiny

OCCUPANCY = "est. achieved occupancy %"


def kernel(ts: float, dur: float, blocks: float, occupancy: float = 10, **more: object):
    return tiny.kernel(ts, dur, **{"blocks per SM": blocks, OCCUPANCY: occupancy}, **more)


def test_the_sum_of_running_kernels_is_capped():
    """Step of 100 us: 0.5 for 10, 0.5 + 0.8 (capped at 1) for 10, 0.8 for 10: 23 of 100."""
    session = tiny.session(
        tiny.step(1, 1000, 100), kernel(1000, 20, 0.5, 40), kernel(1010, 20, 0.8, 20, stream=8)
    )
    (row,) = sm_efficiency(session).to_dict("records")
    assert row["est_sm_efficiency"] == pytest.approx(0.23)
    assert row["est_sm_efficiency_busy"] == pytest.approx(23 / 30)
    assert row["est_occupancy"] == pytest.approx(0.3)
    assert row["recorded_share"] == 1
    curve = sm_efficiency_curve(session)
    assert curve["est_sm_efficiency"].tolist() == pytest.approx([0.5, 1, 0.8, 0])


def test_back_to_back_kernels_leave_no_rest():
    events = [kernel(1000 + i, 1, 0.1) for i in range(100)]
    found = sm_efficiency(tiny.session(tiny.step(1, 1000, 100), *events))
    assert found["est_sm_efficiency"].tolist() == pytest.approx([0.1])
    assert sm_efficiency_curve(tiny.session(*events))["est_sm_efficiency"].tolist() == [
        pytest.approx(0.1),
        0,
    ]


def test_what_lies_outside_the_steps_does_not_count():
    session = tiny.session(tiny.step(1, 1000, 100), kernel(950, 100, 2), kernel(1500, 50, 2))
    assert sm_efficiency(session)["est_sm_efficiency"].tolist() == [0.5]


def test_kernels_that_say_nothing_are_counted_out():
    session = tiny.session(tiny.step(1, 1000, 100), kernel(1000, 30, 1), tiny.kernel(1050, 10))
    assert sm_efficiency(session)["recorded_share"].tolist() == [0.75]


def test_rocm_says_nothing():
    with pytest.raises(NotAnswerableError, match="blocks it has per multiprocessor"):
        sm_efficiency(tiny.session(tiny.kernel(1000, 10)))


def test_the_curve_of_the_plugin(corpus):
    """The TensorBoard plugin wrote its own curve into the expected file of its test.

    All values there are ten times what the kernels of the input (and of the same file) say as
    blocks per SM, 0.125 for 1 block on 80 SMs; version 0.4.3, run on the input, gives ours.
    """
    folder = corpus / "kineto/kineto-gpu-metrics-counters"
    expected = json.loads((folder / "gpu_metrics_expected.json").read_text())["traceEvents"]
    theirs = [
        (event["ts"], event["args"]["Est. SM Efficiency"])
        for event in expected
        if event.get("name", "").endswith("Est. SM Efficiency")
    ]
    session = maiprof_nb.load(folder / "gpu_metrics_input.json")
    (recording,) = session.recordings
    zero_us = (recording.clock.epoch_ns + recording.span.start_ns) // 1000
    curve = sm_efficiency_curve(session)
    ours = list(zip(curve["ts_ns"] // 1000 + zero_us, curve["est_sm_efficiency"], strict=True))
    # A pair of no length fixes the plugin's scale; of equal times the last counts.
    after = {at: value for at, value in theirs if at > theirs[0][0]}
    assert len(after) >= 20
    assert dict(ours) == {at: pytest.approx(value / 10) for at, value in after.items()}
