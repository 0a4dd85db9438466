"""Where the real files are, and what every test may use."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
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


@pytest.fixture(autouse=True)
def no_loop_of_a_browser(request: pytest.FixtureRequest) -> Iterator[None]:
    """Between its calls Playwright's event loop counts as running, in all tests of its worker."""
    if request.node.get_closest_marker("browser"):
        yield
        return
    running = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    yield
    asyncio._set_running_loop(running)
