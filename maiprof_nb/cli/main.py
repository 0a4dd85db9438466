"""``maiprof VERB ...``: finds the verb and runs it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from maiprof_nb.cli import diagnose, lab, serve, summary
from maiprof_nb.errors import MaiprofError

_VERBS = (lab, serve, summary, diagnose)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code: 0, or 2 for an error that was explained."""
    parser = argparse.ArgumentParser(
        prog="maiprof", description="Find out why a PyTorch job is slow or out of memory."
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb in _VERBS:
        verb.add_parser(verbs)
    chosen = parser.parse_args(arguments)
    try:
        return int(chosen.run(chosen))
    except MaiprofError as problem:
        print(f"maiprof: {problem.sentence}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 0


if __name__ == "__main__":
    sys.exit(main())
