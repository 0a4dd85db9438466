"""The simulated samples, loaded once a process, and the truth written down with them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import maiprof_nb
from maiprof_nb import Session

SAMPLES = Path(__file__).parents[1] / "sample_traces"
SCENARIOS = {
    folder.name: folder
    for folder in (*sorted((SAMPLES / "case_study").iterdir()), SAMPLES / "leak")
    if folder.is_dir()
}
FOLDERS = {**SCENARIOS, "oom": SAMPLES / "oom"}  # the last is a snapshot alone


@cache
def loaded(name: str) -> Session:
    return maiprof_nb.load(FOLDERS[name])


@cache
def truth(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SAMPLES / "truth" / f"{name}.json").read_text())
    return found
