"""Figures of torch-tb-profiler for one trace, as JSON; run with a Python that has it."""

from __future__ import annotations

import gzip
import json
import logging
import sys
import tempfile
from pathlib import Path


def main() -> None:
    """Print the figures of the trace named on the command line."""
    from torch_tb_profiler.profiler.data import RunProfileData  # noqa: PLC0415 - only there

    logging.disable(logging.CRITICAL)
    raw = Path(sys.argv[1]).read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "trace.json"
        plain.write_bytes(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
        profile = RunProfileData.parse("worker", None, str(plain), folder)
    gpu = profile.gpu_metrics_parser
    found = {}
    for device in sorted(gpu.gpu_ids):
        found[str(device)] = {
            "GPU utilisation": gpu.gpu_utilization[device],
            "est. SM efficiency": gpu.avg_approximated_sm_efficiency_per_device[device],
            "est. achieved occupancy": _share(gpu.avg_occupancy_per_device[device]),
            "tensor-core share of kernel time": profile.tc_ratio[device],
        }
    print(json.dumps(found))


def _share(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


if __name__ == "__main__":
    main()
