"""The job that runs out of memory with enough of it free: its file, its sums, its truth."""

from __future__ import annotations

import gzip
import pickle

from maiprof_nb.collection.simulation.growing_batch import GrowingBatch
from tests.shipped_samples import FOLDERS, SAMPLES, truth

MIB = 2**20


def test_made_again_the_recording_is_the_same() -> None:
    made = GrowingBatch().run().files()
    stored = (FOLDERS["oom"] / "memory.pickle.gz").read_bytes()
    assert gzip.decompress(stored) == gzip.decompress(made["memory.pickle.gz"])
    assert (SAMPLES / "truth" / "oom.json").read_bytes() == made["truth.json"]
    assert len(stored) < 20_000


def test_the_truth_is_what_the_snapshot_adds_up_to() -> None:
    """From the file's blocks alone, as no step of the analysis reads them."""
    snapshot = pickle.loads(gzip.decompress((FOLDERS["oom"] / "memory.pickle.gz").read_bytes()))
    known = truth("oom")
    failed = snapshot["device_traces"][0][-1]
    assert (failed["action"], failed["size"]) == ("oom", known["requested_bytes"])
    assert failed["device_free"] == known["device_free_bytes"]
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
    free = [block["size"] for block in blocks if block["state"] == "inactive"]
    assert (sum(free), max(free), len(free)) == (
        known["free_in_holes_bytes"], known["largest_hole_bytes"], known["holes"],
    )  # fmt: skip
    reserved = sum(segment["total_size"] for segment in snapshot["segments"])
    assert reserved + failed["device_free"] == known["device_bytes"] == (8192 - 448) * MIB
    # 12 layers keep 6 MiB in each of 8 epochs
    kept = [b for b in blocks if b["frames"] and b["frames"][0]["name"] == "remember"]
    assert len(kept) == known["blocks_of_it"] == 12 * 8
    assert snapshot["simulated"]["scenario"] == known["scenario"] == "oom"
