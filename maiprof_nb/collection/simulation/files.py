"""The files of one simulated recording, always the same bytes."""

from __future__ import annotations

import json
import struct
import zlib

from maiprof_nb.collection.simulation.kineto_json import trace_json
from maiprof_nb.collection.simulation.memory_pickle import snapshot_pickle
from maiprof_nb.collection.simulation.metrics_text import dcgm_text, smi_csv
from maiprof_nb.collection.simulation.training import Run
from maiprof_nb.collection.simulation.truth import truth

_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"  # no time, no name, unknown system


def recording_files(run: Run) -> dict[str, bytes]:
    """Trace, snapshot, two metrics logs and the truth by their file names."""
    known = json.dumps(truth(run), indent=1, sort_keys=False)
    return {
        "rank0.pt.trace.json.gz": gzipped(trace_json(run)),
        "memory.pickle.gz": gzipped(snapshot_pickle(run)),
        "gpu.csv": smi_csv(run),
        "dcgm.prom": dcgm_text(run),
        "truth.json": f"{known}\n".encode(),
    }


def gzipped(data: bytes) -> bytes:
    """`data` as a gzip member that says nothing about when, where or under what name."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packer.compress(data) + packer.flush()
    return _GZIP_HEADER + packed + struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFF_FFFF)
