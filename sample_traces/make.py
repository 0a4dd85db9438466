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


def folder(scenario: Scenario) -> Path:
    """Where the recording of a scenario lies."""
    return HERE / scenario.name if scenario == LEAK else HERE / "case_study" / scenario.name


def content(data: bytes) -> bytes:
    """What is compared: builds of zlib may pack the same content differently."""
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def differences(scenario: Scenario) -> list[str]:
    """Files that are missing or do not hold what the simulator makes."""
    made = recording_files(simulate(scenario))
    there = folder(scenario)
    return [
        str((there / name).relative_to(HERE))
        for name, data in made.items()
        if not (there / name).is_file() or content((there / name).read_bytes()) != content(data)
    ]


def write(scenario: Scenario) -> None:
    """Write the recording of a scenario."""
    there = folder(scenario)
    there.mkdir(parents=True, exist_ok=True)
    for name, data in recording_files(simulate(scenario)).items():
        (there / name).write_bytes(data)
        print(f"{(there / name).relative_to(HERE)}: {len(data):,} bytes")


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
