"""Rules on memory on real public snapshots; what each shows was read off the files by hand."""

from __future__ import annotations

from functools import cache

import pytest

import maiprof_nb
from maiprof_nb import Session
from maiprof_nb.findings.finding import Finding
from tests.conftest import CORPUS
from tests.findings.asking import finding
from tests.findings.tiny_memory import GIB, MIB

MEMORY = CORPUS / "memory"
pytestmark = pytest.mark.skipif(
    not MEMORY.is_dir(), reason=f"no corpus at {CORPUS}: set MAIPROF_CORPUS"
)


@cache
def real(pattern: str) -> Session:
    (path,) = MEMORY.glob(pattern)
    return maiprof_nb.load(path)


def asked(pattern: str, rule: str) -> Finding:
    return finding(real(pattern), rule)


def test_sixty_teeth() -> None:
    found = asked("cs336-charan/*", "memory-sawtooth")  # 5 passes through 12 layers
    assert found.outcome == "passed"
    assert found.title.startswith("60 teeth")
    assert "healthy" in found.title
    assert asked("cs336-charan/*", "memory-leak").outcome == "passed"


def test_one_forward_pass_that_keeps_its_activations_is_no_leak() -> None:
    """All 1 528 allocations lie in one call of batch_step (Agent.py:51); no stack has a backward.

    Its forward pass evaluates level by level (cycles 1 to 40), then forward_train keeps what
    the backward pass will need, and the log ends there: the floor rises, memory never comes down.
    """
    found = asked("octree-nca/my_snapshot_5*", "memory-leak")
    assert found.outcome == "not-applicable"
    assert found.reason.startswith("The floor rises only from cycle 40 to 69, and memory never")
    assert "Model_BasicNCA3D.py:6" in found.reason
    assert "prof.step()" in found.reason


def test_weights_copied_in_are_no_leak() -> None:
    assert asked("select-n/snapshot_bert*", "memory-leak").outcome == "passed"


def test_a_ramp_has_no_cycles() -> None:
    for rule in ("memory-leak", "memory-sawtooth"):
        assert asked("cs336-kk/memory_ctx128_forward.pickle", rule).outcome == "not-applicable"


def test_ripples_are_no_teeth() -> None:
    # repeats 4 changes of a few KiB; its large teeth are autotuning, on a ramp
    found = asked("cs336-kk/memory_small_forward*", "memory-sawtooth")
    assert found.outcome == "not-applicable"


def test_mostly_unused() -> None:
    found = asked("octree-nca/my_snapshot_3*", "over-reservation")
    assert found.outcome == "found"
    assert found.title.startswith("94.0 % of 20.7 GiB reserved")
    assert found.size_bytes == pytest.approx((21_166 - 1_270) * MIB, abs=MIB)
    assert asked("select-n/snapshot_noevents*", "over-reservation").title.startswith("90.2 %")
    # 18 GB in wholly free segments
    found = asked("cs336-kk/memory_snapshot_noevents*", "over-reservation")
    assert found.evidence[0]["cached_bytes"] > 16 * GIB


def test_stranded_bytes() -> None:
    found = asked("cs336-kk/memory_ctx256_fullstep*", "fragmentation")
    assert (found.outcome, found.severity) == ("found", "medium")
    assert found.size_bytes == pytest.approx(3.2 * GIB, rel=0.03)
    assert asked("cs336-kk/memory_ctx128_fullstep*", "fragmentation").outcome == "passed"


@pytest.mark.parametrize(
    ("pattern", "used_mib", "reserved_mib"),
    [("flexgen/oom_snapshot*", 11_292, 11_296), ("blockzero/*", 30_360, 30_368)],
)
def test_nearly_full(pattern: str, used_mib: int, reserved_mib: int) -> None:
    found = asked(pattern, "oom")
    assert found.outcome == "found"
    assert found.size_bytes == pytest.approx(used_mib * MIB, abs=MIB)
    assert f"({100 * used_mib / reserved_mib:.2f} %)" in found.title


def test_tightly_packed_is_not_full() -> None:
    assert asked("cs336-kk/memory_ctx512_forward_compile*", "oom").outcome == "passed"


def test_thrash() -> None:
    found = asked("select-n/snapshot_llama_streams*", "allocator-thrash")
    assert (found.outcome, found.severity) == ("found", "high")
    # 584 taken and 579 given back in the whole log
    assert found.title.startswith("After the warm-up 356 segments")
    # 780 given back by one empty_cache at the start
    assert asked("cs336-kk/memory_ctx256_fullstep*", "allocator-thrash").outcome == "passed"


def test_logs_that_begin_late() -> None:
    found = asked("cs336-kk/memory_ctx128_forward.pickle", "late-snapshot")
    assert found.outcome == "found"  # 13 125 of 18 595 MiB
    assert "(70.6 %)" in found.title
    assert asked("octree-nca/my_snapshot_3*", "late-snapshot").outcome == "passed"
