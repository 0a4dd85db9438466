"""Make the simulated sample recordings again, byte for byte.

Usage: ``python sample_traces/make.py [--check] [SCENARIO ...]``
"""

from __future__ import annotations

import argparse
import gzip
import sys
from pathlib import Path

from maiprof_nb.collection.simulation import LEAK, SCENARIOS, Scenario, recording_files, simulate

HERE = Path(__file__).resolve().parent
TRUTH = "truth.json"


def folder(scenario: Scenario) -> Path:
    """Where the recording of a scenario lies."""
    return HERE / scenario.name if scenario == LEAK else HERE / "case_study" / scenario.name


def place(scenario: Scenario, name: str) -> Path:
    """Where a file goes: the truth is no part of the recording, and lies apart."""
    if name == TRUTH:
        return HERE / "truth" / f"{scenario.name}.json"
    return folder(scenario) / name


def content(data: bytes) -> bytes:
    """What is compared: builds of zlib may pack the same content differently."""
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def differences(scenario: Scenario) -> list[str]:
    """Files that are missing or do not hold what the simulator makes."""
    made = recording_files(simulate(scenario))
    places = {place(scenario, name): data for name, data in made.items()}
    return [
        str(path.relative_to(HERE))
        for path, data in places.items()
        if not path.is_file() or content(path.read_bytes()) != content(data)
    ]


def write(scenario: Scenario) -> None:
    """Write the recording of a scenario."""
    for name, data in recording_files(simulate(scenario)).items():
        path = place(scenario, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        print(f"{path.relative_to(HERE)}: {len(data):,} bytes")


def main() -> int:
    """Write or check; the exit status is 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenarios", nargs="*", help=f"of {', '.join(SCENARIOS)}; all by default")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args()
    unknown = sorted(set(options.scenarios) - set(SCENARIOS))
    if unknown:
        parser.error(f"there is no scenario {', '.join(unknown)}")
    chosen = [SCENARIOS[name] for name in options.scenarios or SCENARIOS]
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
