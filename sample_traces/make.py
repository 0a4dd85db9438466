"""Make the simulated sample recordings again, byte for byte.

Usage: ``python sample_traces/make.py [--check] [SCENARIO ...]``
"""

from __future__ import annotations

import argparse
import gzip
import sys
from pathlib import Path

from maiprof_nb.collection.simulation import LEAK, SCENARIOS, Scenario, recording_files, simulate
from maiprof_nb.collection.simulation.growing_batch import GrowingBatch

ALL: dict[str, Scenario | GrowingBatch] = {**SCENARIOS, GrowingBatch.name: GrowingBatch()}
HERE = Path(__file__).resolve().parent
TRUTH = "truth.json"


def files(scenario: Scenario | GrowingBatch) -> dict[str, bytes]:
    """The files of a scenario by their names."""
    if isinstance(scenario, GrowingBatch):
        return GrowingBatch().run().files()
    return recording_files(simulate(scenario))


def folder(scenario: Scenario | GrowingBatch) -> Path:
    """Where the recording of a scenario lies."""
    alone = scenario.name in (LEAK.name, GrowingBatch.name)
    return HERE / scenario.name if alone else HERE / "case_study" / scenario.name


def place(scenario: Scenario | GrowingBatch, name: str) -> Path:
    """Where a file goes: the truth is no part of the recording, and lies apart."""
    if name == TRUTH:
        return HERE / "truth" / f"{scenario.name}.json"
    return folder(scenario) / name


def content(data: bytes) -> bytes:
    """What is compared: builds of zlib may pack the same content differently."""
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def differences(scenario: Scenario | GrowingBatch) -> list[str]:
    """Files that are missing or do not hold what the simulator makes."""
    made = files(scenario)
    places = {place(scenario, name): data for name, data in made.items()}
    return [
        str(path.relative_to(HERE))
        for path, data in places.items()
        if not path.is_file() or content(path.read_bytes()) != content(data)
    ]


def write(scenario: Scenario | GrowingBatch) -> None:
    """Write the recording of a scenario."""
    for name, data in files(scenario).items():
        path = place(scenario, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        print(f"{path.relative_to(HERE)}: {len(data):,} bytes")


def main() -> int:
    """Write or check; the exit status is 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenarios", nargs="*", help=f"of {', '.join(ALL)}; all by default")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args()
    unknown = sorted(set(options.scenarios) - set(ALL))
    if unknown:
        parser.error(f"there is no scenario {', '.join(unknown)}")
    chosen = [ALL[name] for name in options.scenarios or ALL]
    if not options.check:
        for scenario in chosen:
            write(scenario)
        return 0
    different = [name for scenario in chosen for name in differences(scenario)]
    for name in different:
        print(f"differs: {name}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
