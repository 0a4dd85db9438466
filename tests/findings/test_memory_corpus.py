"""What each rule on memory says of each public snapshot, so that a change of one is seen.

The outcomes were looked at file by file: ``-`` does not apply, ``ok`` passed, else the severity.
No file is a leak (octree-nca/my_snapshot_5 is one forward pass that keeps its activations), no file
holds a request that failed, and none states the size of its device, so head-room is unknown. The
two files with expandable segments hold no log, so there is nothing of them to replay. The log of
mosaic/output has more allocated than it ever reserved, so nothing is said of how full it was.
"""

from __future__ import annotations

import pytest

import maiprof_nb
from maiprof_nb.analysis.memory_replay import model_agreement
from maiprof_nb.findings.diagnosis import diagnose
from tests.conftest import CORPUS

MEMORY = CORPUS / "memory"
pytestmark = pytest.mark.skipif(
    not MEMORY.is_dir(), reason=f"no corpus at {CORPUS}: set MAIPROF_CORPUS"
)

RULES = {
    "saw": "memory-sawtooth",
    "leak": "memory-leak",
    "frag": "fragmentation",
    "oom": "oom",
    "thrash": "allocator-thrash",
    "over": "over-reservation",
    "late": "late-snapshot",
    "opt": "optimizer-peak",
    "room": "memory-headroom",
}
SHORT = {"not-applicable": "-", "passed": "ok", "medium": "med"}
TABLE = """
file                                   saw    leak   frag   oom    thrash over   late   opt    room
blockzero/cuda_snapshot                -      -      ok     med    ok     ok     -      -      -
cs336-charan/memory_snapshot           ok     ok     ok     ok     ok     ok     low    ok     -
cs336-kk/memory_2.7b_forward           -      -      ok     ok     ok     ok     low    ok     -
cs336-kk/memory_ctx128_forward         -      -      ok     ok     ok     ok     low    ok     -
cs336-kk/memory_ctx128_fullstep        -      -      ok     ok     ok     ok     ok     low    -
cs336-kk/memory_ctx256_fullstep        -      -      med    ok     ok     ok     ok     low    -
cs336-kk/memory_ctx512_forward_compile -      -      ok     ok     ok     ok     ok     ok     -
cs336-kk/memory_ctx512_forward_mixed   -      -      ok     ok     ok     ok     ok     ok     -
cs336-kk/memory_ctx512_fullstep        -      -      ok     ok     ok     ok     ok     low    -
cs336-kk/memory_small_forward          -      -      ok     ok     ok     ok     ok     ok     -
cs336-kk/memory_snapshot_noevents      -      -      ok     ok     -      low    -      -      -
diffusion/my_snapshot                  -      -      ok     ok     ok     ok     -      -      -
expandable/dump_snapshot_1gpu          -      -      ok     ok     -      ok     -      -      -
expandable/dump_snapshot_2gpu          -      -      ok     ok     -      ok     -      -      -
flexgen/1.3b_snapshot_a                -      -      med    ok     ok     ok     -      -      -
flexgen/1.3b_snapshot_b                -      -      ok     ok     ok     med    -      -      -
flexgen/1.3b_snapshot_c                -      -      ok     ok     ok     med    -      -      -
flexgen/oom_snapshot                   -      -      ok     med    ok     ok     -      -      -
mosaic/output                          -      -      ok     -      ok     ok     ok     -      -
octree-nca/cuda_single_step            -      -      ok     ok     ok     ok     ok     -      -
octree-nca/inference2_peso_oct         -      ok     ok     ok     ok     low    ok     -      -
octree-nca/my_snapshot_1               -      ok     ok     ok     ok     med    ok     -      -
octree-nca/my_snapshot_2               -      ok     ok     ok     ok     med    ok     ok     -
octree-nca/my_snapshot_3               low    ok     ok     ok     ok     low    ok     ok     -
octree-nca/my_snapshot_4               -      ok     ok     ok     ok     low    ok     ok     -
octree-nca/my_snapshot_5               -      -      ok     ok     ok     med    ok     ok     -
octree-nca/traditional_single_step     -      -      ok     ok     ok     ok     ok     -      -
select-n/snapshot_bert                 ok     ok     ok     ok     ok     ok     low    ok     -
select-n/snapshot_llama_streams        ok     ok     ok     ok     high   ok     low    ok     -
select-n/snapshot_noevents             -      -      ok     ok     -      med    -      -      -
"""
HEAD, *ROWS = (line.split() for line in TABLE.strip().splitlines())


@pytest.mark.parametrize(("file", "expected"), [(row[0], row[1:]) for row in ROWS])
def test_outcomes(file: str, expected: list[str]) -> None:
    (path,) = MEMORY.glob(f"{file}.pickle*")
    found = {one.rule: one for one in diagnose(maiprof_nb.load(path), rules=list(RULES.values()))}
    said = [found[RULES[column]].severity or found[RULES[column]].outcome for column in HEAD[1:]]
    assert [SHORT.get(one, one) for one in said] == expected


def test_no_snapshot_is_left_out() -> None:
    names = {
        str(path.relative_to(MEMORY)).split(".pickle")[0] for path in MEMORY.rglob("*.pickle*")
    }
    assert names == {row[0] for row in ROWS}


@pytest.mark.parametrize("file", ["dump_snapshot_1gpu", "dump_snapshot_2gpu"])
def test_expandable_segments_of_real_files_hold_no_log(file: str) -> None:
    """When one does, the model must repeat it: add it to tests/analysis/test_memory_replay.py."""
    session = maiprof_nb.load(MEMORY / "expandable" / f"{file}.pickle")
    assert session.table("segments")["expandable"].all()
    assert model_agreement(session).requests == 0
