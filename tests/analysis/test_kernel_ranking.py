"""Kernels by name and by launch; every figure summed by hand."""

from __future__ import annotations

import pytest

from maiprof_nb import UsageError
from maiprof_nb.analysis.kernel_ranking import kernel_ranking
from tests import tiny_traces as tiny

SMALL = {"grid": [4, 1, 1], "block": [128, 1, 1], "registers per thread": 32}
LARGE = {"grid": [864, 2, 1], "block": [256, 1, 1], "registers per thread": 40, "shared memory": 16}


def session() -> tiny.Session:
    return tiny.session(
        tiny.kernel(1000, 10, name="volta_sgemm_128x32_nn", **SMALL),
        tiny.kernel(1020, 30, name="volta_sgemm_128x32_nn", **LARGE),
        tiny.kernel(1060, 20, name="volta_sgemm_128x32_nn", **LARGE),
        tiny.kernel(1090, 5, name="mystery"),
        tiny.memcpy(1100, 35, bytes=700),
    )


def test_by_name():
    found = kernel_ranking(session()).set_index("name")
    gemm = found.loc["volta_sgemm_128x32_nn"]
    assert gemm[["calls", "total_ns", "min_ns", "max_ns"]].tolist() == [3, 60_000, 10_000, 30_000]
    assert gemm["mean_ns"] == 20_000
    assert gemm["share"] == 0.6  # of 60 + 5 + 35 us
    assert (gemm["grid"], gemm["block"]) == ("[864, 2, 1]", "[256, 1, 1]")  # two of three calls
    assert gemm["launches"] == 2
    assert (gemm["registers"], gemm["shared_memory_bytes"]) == (40, 16)
    assert found["tensor_core"].dropna().to_dict() == {
        "volta_sgemm_128x32_nn": "no",
        "mystery": "name does not say",
    }
    assert found.loc["Memcpy HtoD", "size_bytes"] == 700
    assert found["grid"].isna().to_dict()["mystery"]


def test_by_launch():
    found = kernel_ranking(session(), by="launch")
    gemm = found[found["name"] == "volta_sgemm_128x32_nn"]
    assert gemm["grid"].tolist() == ["[864, 2, 1]", "[4, 1, 1]"]
    assert gemm["total_ns"].tolist() == [50_000, 10_000]


def test_means_are_weighted_by_time():
    occupancy = "est. achieved occupancy %"
    found = kernel_ranking(
        tiny.session(
            tiny.kernel(1000, 30, **{occupancy: 10, "blocks per SM": 1}),
            tiny.kernel(1100, 10, **{occupancy: 50, "blocks per SM": 5}),
            tiny.kernel(1200, 99),
        )
    )
    assert found["est_occupancy_pct"].tolist() == [20.0]  # (30 x 10 + 10 x 50) / 40
    assert found["blocks_per_sm"].tolist() == [2.0]


def test_without_device_work():
    assert kernel_ranking(tiny.session(tiny.operator("aten::mm", 1000, 5))).empty


def test_unknown_grouping():
    with pytest.raises(UsageError, match="cannot be grouped by stream"):
        kernel_ranking(session(), by="stream")
