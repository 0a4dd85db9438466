"""Where names and measurement of tensor cores contradict, by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import maiprof_nb
from maiprof_nb.analysis.tensor_cores_measured import (
    MEASURED_MORE,
    NAMES_SAY_MORE,
    tensor_cores_measured,
)
from tests import tiny_traces as tiny
from tests.findings.asking import finding
from tests.made_tensor_jobs import PLAIN, TENSOR, job


@pytest.mark.parametrize(
    ("name", "activity", "disagreement"),
    [
        (TENSOR, 0.001, NAMES_SAY_MORE),  # half of the time in them, nothing measured
        (TENSOR, 0.2, ""),
        (PLAIN, 0.0, ""),
        (PLAIN, 0.015, ""),  # noise
        (PLAIN, 0.2, MEASURED_MORE),
        ("mystery", 0.2, ""),  # the kernel may be one
    ],
)
def test_disagreement(tmp_path: Path, name: str, activity: float, disagreement: str) -> None:
    session = job(tmp_path, name, activity)
    (row,) = tensor_cores_measured(session).to_dict("records")
    assert row["measured_activity"] == pytest.approx(activity)
    assert row["disagreement"] == disagreement
    found = finding(session, "no-tensor-cores")
    assert (found.outcome == "found" and found.severity == "low") == bool(disagreement)
    if disagreement:
        named = "50.0 %" if name == TENSOR else "0.0 %"
        assert f"run {named} of the time" in found.title
        assert f"activity is {activity * 100:.1f} %" in found.title
        json.dumps(found.evidence)


def test_a_sampler_of_another_device_tells_nothing(tmp_path: Path) -> None:
    (row,) = tensor_cores_measured(job(tmp_path, TENSOR, 0.001, gpu=3)).to_dict("records")
    assert row["measured_activity"] != row["measured_activity"]
    assert row["disagreement"] == ""


def test_without_a_sampler() -> None:
    found = tensor_cores_measured(tiny.session(tiny.kernel(1000, 5)))
    assert found["measured_activity"].isna().all()
    assert found["disagreement"].tolist() == [""]


def test_without_device_work() -> None:
    with pytest.raises(maiprof_nb.NotAnswerableError):
        tensor_cores_measured(tiny.session(tiny.operator("aten::mm", 1000, 5)))
