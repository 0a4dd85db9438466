"""Ten seconds of a V100 with matrix work for half of them, and what DCGM measured."""

from __future__ import annotations

from pathlib import Path

import maiprof_nb
from tests import tiny_traces as tiny

TENSOR, PLAIN = "volta_h884gemm_64x128_ldg8_nn", "volta_sgemm_128x32_nn"
_EPOCH_NS = 1_700_000_000_000_000_000
_SECOND_US = 1_000_000


def job(folder: Path, kernel: str, activity: float | None, *, gpu: int = 0) -> maiprof_nb.Session:
    """A step of 10 s in which aten::mm keeps kernels of this name running for 5 s.

    ``activity`` is the tensor-core activity that was measured of GPU `gpu` all the time.
    """
    in_mm = {"External id": 1}
    trace = tiny.text(
        [
            tiny.step(1, 1000, 10 * _SECOND_US),
            tiny.operator("aten::mm", 1000, 9, **in_mm),
            tiny.kernel(1010, 5 * _SECOND_US, name=kernel, **in_mm, **_CONFIGURATION),
        ],
        baseTimeNanoseconds=_EPOCH_NS,
        deviceProperties=[{"id": 0, "name": "Tesla V100-SXM2-16GB", "computeMajor": 7}],
    )
    (folder / "job.pt.trace.json").write_bytes(trace)
    if activity is not None:
        name = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"
        rows = [f"# TYPE {name} gauge"]
        for second in range(11):
            at_ms = _EPOCH_NS // 1_000_000 + 1000 * second
            rows.append(f'{name}{{gpu="{gpu}",Hostname="h"}} {activity} {at_ms}')
        (folder / "dcgm.prom").write_text("\n".join(rows) + "\n")
    return maiprof_nb.load(folder)


_CONFIGURATION = {"blocks per SM": 0.5, "est. achieved occupancy %": 40}
