"""Where the real files are, and what every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# Tests are about reading; those about the cache turn it on for themselves.
os.environ["MAIPROF_CACHE"] = "off"

REPOSITORY = Path(__file__).parents[1]
CORPUS = Path(os.environ.get("MAIPROF_CORPUS", REPOSITORY.parent / "shared" / "corpus"))


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real public files; the test is skipped where there is none."""
    if not CORPUS.is_dir():
        pytest.skip(f"no corpus at {CORPUS}: set MAIPROF_CORPUS to the folder of real files")
    return CORPUS


@pytest.fixture(scope="session")
def samples() -> Path:
    """The recordings the project ships."""
    return REPOSITORY / "sample_traces"
