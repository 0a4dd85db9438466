"""``python -m maiprof_nb.loading.ahead_worker FILE...``: reads files into the cache.

Prints how far it is, from 0 to 1, a line at a time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from maiprof_nb.errors import MaiprofError
from maiprof_nb.loading import progress
from maiprof_nb.loading.reading import read_through


def _printing(before: int, count: int) -> Callable[[float], None]:
    return lambda share: print((before + share) / count, flush=True)  # noqa: T201


def main(names: Sequence[str]) -> None:
    """Read each file into the cache."""
    for number, name in enumerate(names):
        try:
            with progress.reported_to(_printing(number, len(names))):
                read_through(name)
        except MaiprofError:
            continue  # whoever asked for it meets the same error, with its words


if __name__ == "__main__":
    main(sys.argv[1:])
