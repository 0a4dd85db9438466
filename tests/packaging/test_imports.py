"""Who imports what, and what ``import maiprof_nb`` costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

NEVER = {"plotly", "ipywidgets", "anywidget", "itables", "traitlets", "IPython", "jupyterlab"}
COLLECTION_ONLY = {"torch", "pynvml", "psutil"}
LATER = {"distributed", "s3fs", "requests", "aiohttp"}

# The cost is counted, not timed: 139 modules took 0.09 s beyond pandas when this was written,
# so the 0.3 s that are allowed are about 400.
MAX_MODULES = 400

REPORT = """
import json, sys
import pandas
before = set(sys.modules)
import maiprof_nb
print(json.dumps(sorted(set(sys.modules) - before)))
"""


@pytest.fixture(scope="module")
def imported(repo: Path) -> list[str]:
    """Modules that ``import maiprof_nb`` loads beyond those of pandas."""
    done = subprocess.run(
        [sys.executable, "-c", REPORT],
        env=source_path(repo),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    modules: list[str] = json.loads(done.stdout)
    return modules


def source_path(repo: Path) -> dict[str, str]:
    paths = [str(repo), str(repo / "widgets"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def test_import_brings_neither_drawing_nor_torch(imported: list[str]) -> None:
    tops = {name.split(".")[0] for name in imported}
    assert "maiprof_nb" in tops
    assert tops & (NEVER | COLLECTION_ONLY | LATER) == set()


def test_import_is_small(imported: list[str]) -> None:
    assert len(imported) < MAX_MODULES, imported


def test_contracts_hold(repo: Path) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=repo,
        env=source_path(repo),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
