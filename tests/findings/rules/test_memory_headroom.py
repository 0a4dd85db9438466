"""Peak memory against the device's, from the allocator's events and from samplers."""

from __future__ import annotations

import pytest

import maiprof_nb
from tests import tiny_traces as tiny
from tests.conftest import CORPUS
from tests.findings.asking import finding
from tests.shipped_samples import loaded, truth

RULE = "memory-headroom"
GIB, MIB = 2**30, 2**20
DEVICE = [{"id": 0, "name": "GPU", "totalGlobalMem": 16 * GIB}]


def session(reserved: int, devices: list = DEVICE) -> tiny.Session:
    args = {"Device Type": 1, "Device Id": 0, "Addr": 4096, "Bytes": 512, "Total Allocated": 512}
    event = {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 5, "tid": 5}
    return tiny.session(
        tiny.kernel(1000, 50),
        event | {"ts": 1010, "s": "t", "args": args | {"Total Reserved": reserved}},
        deviceProperties=devices,
    )


def test_found() -> None:
    """4 of 16 GiB; 5 % kept: 11.2 GiB free, at least 3.8 times the batch."""
    found = finding(session(4 * GIB), RULE)
    assert found.outcome == "found"
    assert found.size_bytes == int(16 * GIB * 0.95) - 4 * GIB
    assert "25.0 % of the device's memory (reserved by PyTorch's allocator)" in found.title
    assert found.evidence[0]["least_factor"] == 3.8
    assert found.change == "2 settings"


def test_passed() -> None:
    found = finding(session(12 * GIB), RULE)
    assert found.outcome == "passed"
    assert "75.0 %" in found.title


@pytest.mark.parametrize("given", [session(4 * GIB, []), tiny.session(tiny.kernel(1000, 5))])
def test_not_applicable(given: tiny.Session) -> None:
    assert finding(given, RULE).outcome == "not-applicable"


def with_batches(*batches: int) -> tiny.Session:
    """A GiB that stays, and steps that take 16 MiB a sample of what they are given."""
    events, at, held = [], 1000.0, GIB

    def change(size: int) -> dict:
        nonlocal held, at
        held, at = held + size, at + 10
        args = {"Device Type": 1, "Device Id": 0, "Addr": 4096, "Bytes": size}
        event = {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 5, "tid": 5}
        return event | {"ts": at, "s": "t", "args": args | {
            "Total Allocated": held, "Total Reserved": held}}  # fmt: skip

    events.append(change(512))
    for step, batch in enumerate(batches):
        events.append(tiny.annotation(f"ProfilerStep#{step}", at + 1, 60))
        dims = {"Input Dims": [[batch, 512], [512, 512], [512]]}
        layer = tiny.operator("aten::linear", at + 5, 3, **dims)
        events += [layer, change(batch * 16 * MIB), change(-batch * 16 * MIB)]
        at += 60
    events.append(change(-512))
    return tiny.session(*events, deviceProperties=DEVICE)


def test_the_slope_over_steps_of_different_size() -> None:
    found = finding(with_batches(8, 16, 8, 24, 16), RULE)
    assert found.outcome == "found"
    row = found.evidence[0]
    assert (row["batch"], row["bytes_per_sample"]) == (24, 16 * MIB)
    assert (row["low_bytes_per_sample"], row["high_bytes_per_sample"]) == (16 * MIB, 16 * MIB)
    # 95 % of 16 GiB, less the peak of 1 GiB, 512 B and 24 samples of 16 MiB, by 16 MiB
    more = (int(16 * GIB * 0.95) - GIB - 512 - 24 * 16 * MIB) // (16 * MIB)
    assert f"room for {more} samples more, a batch of {24 + more} instead of 24" in found.title
    assert "measured over steps of different size" in found.title


def test_one_batch_size_is_read_off_the_peak() -> None:
    found = finding(with_batches(8, 8, 8, 8, 8), RULE)
    row = found.evidence[0]
    assert (row["batch"], row["slope"]) == (8, "what comes and goes at the peak")
    assert row["bytes_per_sample"] == 16 * MIB
    assert "Two steps of another size" in found.advice


def test_a_window_is_judged_by_its_own_peak() -> None:
    whole = with_batches(8, 8, 8, 8, 8, 600)
    assert finding(whole, RULE).outcome == "passed"  # 10.4 of 16 GiB
    found = finding(whole.select(steps=(0, 4)), RULE)
    assert found.outcome == "found"
    assert found.evidence[0]["peak_bytes"] == GIB + 512 + 8 * 16 * MIB


@pytest.mark.xdist_group("simulated samples")
def test_bytes_a_sample_foretell_the_doubled_batch() -> None:
    """Read off one batch size in one job, against what the next job with twice of it took."""
    one, twice = (truth(name) for name in ("before", "batch"))
    rows = [known["settings"]["rows_per_batch"] for known in (one, twice)]
    peaks = [known["memory"]["peak_allocated_bytes"] for known in (one, twice)]
    measured = (peaks[1] - peaks[0]) / (rows[1] - rows[0])
    row = finding(loaded("before"), RULE).evidence[0]
    assert row["batch"] == rows[0]
    assert row["bytes_per_sample"] == pytest.approx(measured, rel=0.001)


@pytest.mark.xdist_group("simulated samples")
def test_samples() -> None:
    """The case study: 47.13 % at most, and the batch was doubled."""
    found = finding(loaded("before"), RULE)
    assert found.outcome == "found"
    assert "47.1 %" in found.title
    assert found.evidence[0]["least_factor"] >= 2
    assert finding(loaded("batch"), RULE).outcome == "passed"


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"no corpus at {CORPUS}: set MAIPROF_CORPUS")
def test_a_real_training_job_of_torch_1_9() -> None:
    """ResNet-50 on a V100 of 32 GB with batches of 32; its [memory] instants state no totals."""
    (path,) = (CORPUS / "kineto").glob("kineto-resnet50-workers/num_workers_0*")
    found = finding(maiprof_nb.load(path), RULE)
    assert found.outcome == "found"
    row = found.evidence[0]
    assert row["batch"] == 32
    # some 85 MiB a sample is what fp32 activations of ResNet-50 at 224 x 224 are known to take
    assert 70 * MIB < row["bytes_per_sample"] < 100 * MIB
    assert "allocated by PyTorch's allocator" in found.title


def test_a_leak_comes_first() -> None:
    assert "floor, which rises (see memory-leak)" in finding(loaded("leak"), RULE).advice
