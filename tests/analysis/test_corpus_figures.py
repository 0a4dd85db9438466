"""Figures of published traces, as those who collected them measured them with scripts of their own.

The right values are the last column of the corpus's table. Each is given to the digits printed
there; "span" of a busy or exposed share is from the first step's start to the last one's end.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

import maiprof_nb
from maiprof_nb import NotAnswerableError, Session
from maiprof_nb.analysis.device_activity import breakdown
from maiprof_nb.analysis.phases import phases
from maiprof_nb.analysis.steps import steps

CORPUS = Path(os.environ.get("MAIPROF_CORPUS", Path(__file__).parents[3] / "shared" / "corpus"))
KINETO = CORPUS / "kineto"
pytestmark = [
    pytest.mark.skipif(not KINETO.is_dir(), reason=f"no corpus at {CORPUS}: set MAIPROF_CORPUS"),
    pytest.mark.xdist_group("corpus figures"),
]
RESNET = "kineto-resnet50-workers/num_workers_"
WORKERS_0 = f"{RESNET}0.worker0.1623143089861.pt.trace.json.gz"
WORKERS_4 = f"{RESNET}4.worker0.1623212756351.pt.trace.json.gz"
PER_CENT = 0.005  # a share printed as a whole number of per cent
PER_MILLE = 0.0005 + 1e-9  # printed with one decimal


@cache
def loaded(name: str) -> Session:
    return maiprof_nb.load(KINETO / name)


def host_share(name: str, phase: str) -> float:
    return phases(loaded(name)).set_index("phase")["host_share"][phase]


def test_data_loading_without_workers():
    """39 % of the span inside DataLoader."""
    assert host_share(WORKERS_0, "data loading") == pytest.approx(0.39, abs=PER_CENT)


def test_data_loading_with_four_workers():
    """DataLoader 1 % of the span."""
    assert host_share(WORKERS_4, "data loading") == pytest.approx(0.01, abs=PER_CENT)


def test_busy_without_workers():
    """GPU busy 57 %."""
    (row,) = breakdown(loaded(WORKERS_0)).to_dict("records")
    assert row["busy_share"] == pytest.approx(0.57, abs=PER_CENT)


@pytest.mark.parametrize("name", [WORKERS_0, WORKERS_4])
def test_kernels_of_the_optimizer(name):
    """2 898 optimizer kernels of 1 us: launched by 6 steps, most of them alike."""
    row = phases(loaded(name)).set_index("phase").loc["optimizer"]
    assert row["kernels"] == 2898


def test_launch_bound_inference():
    """tracelens-bert-small-h100: GPU busy 7 %."""
    name = "tracelens-bert-small-h100/gaunernst_bert-small-uncased__1016001.json.gz"
    (row,) = breakdown(loaded(name)).to_dict("records")
    assert row["busy_share"] == pytest.approx(0.07, abs=PER_CENT)


def test_exposed_communication_of_ddp():
    """hta-df-index-resolver: 20.6 % exposed NCCL, 2 020 optimizer kernels."""
    session = loaded("hta-df-index-resolver/df_index_resolver.json.gz")
    (row,) = breakdown(session).to_dict("records")
    share = row["exposed_communication_ns"] / row["window_ns"]
    assert share == pytest.approx(0.206, abs=PER_MILLE)
    assert phases(session).set_index("phase")["kernels"]["optimizer"] == 2020


def test_straggler():
    """torchrec-sleep-straggler: rank 2 is 4.7 % busy; the others "95.6 %", all NCCL."""
    session = loaded("torchrec-sleep-straggler-4ranks")
    found = breakdown(session).set_index("rank")
    assert found["busy_share"][2] == pytest.approx(0.047, abs=PER_MILLE)
    for rank in (0, 1, 3):
        assert found["busy_share"][rank] == pytest.approx(0.956, abs=PER_MILLE), rank
        exposed = found["exposed_communication_ns"][rank] / found["window_ns"][rank]
        assert exposed == pytest.approx(0.92, abs=PER_CENT), rank


def test_first_and_last_of_eight_ranks():
    """param-dlrm: rank 1 waits with 56 % of its span in exposed NCCL, rank 7 has 13 %.

    Each rank's own span, as the table gives it for each file.
    """
    for rank, share in ((1, 0.56), (7, 0.13)):
        (path,) = (KINETO / "param-dlrm-8ranks").glob(f"worker{rank}_*")
        (row,) = breakdown(maiprof_nb.load(path)).to_dict("records")
        exposed = row["exposed_communication_ns"] / row["window_ns"]
        assert exposed == pytest.approx(share, abs=PER_CENT), rank


def test_overlapping_kernels_of_one_stream():
    """tracelens-qwen3-moe-decode on B300: durations sum to 117 % of the union."""
    session = loaded("tracelens-qwen3-moe-decode/B300.1782799835.6885648-TP-0-DECODE.trace.json.gz")
    work = session.table("kernels")
    (row,) = breakdown(session).to_dict("records")
    busy = row["window_ns"] - row["idle_ns"]
    assert work["dur_ns"].sum() / busy == pytest.approx(1.17, abs=PER_CENT)


def test_no_kernels_is_no_idle_gpu():
    """zoology: 268 launches and not one kernel."""
    with pytest.raises(NotAnswerableError, match="launched device work"):
        breakdown(loaded("zoology-a100-no-kernels/trace.json.gz"))


def test_steps_are_found_once_where_the_device_mirrors_them():
    session = loaded("hta-nccl-args/nccl_data.json.gz")
    assert len(steps(session)) == 3
