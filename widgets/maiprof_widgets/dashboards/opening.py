"""Which recording the notebooks of one server look at."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from urllib.parse import parse_qs

import maiprof_nb
from maiprof_nb.errors import LoadError, MaiprofError
from maiprof_nb.loading.progress import Report
from maiprof_nb.session import Session
from maiprof_nb.shipped import SAMPLE, shipped_folder
from maiprof_widgets.dashboards.cell_progress import shown_progress

RECORDING = "MAIPROF_RECORDING"
ROOT = "MAIPROF_ROOT"

SAMPLES = {
    "case_study/before": "case study, as found: input-bound, GPU idle (simulated)",
    "case_study/workers": "case study, fix 1: num_worker_threads tuned (simulated)",
    "case_study/batch": "case study, fix 2: batch doubled (simulated)",
    "case_study/amp": "case study, fix 3: mixed precision (simulated)",
    "case_study/optimizer": "case study, fix 4: multi-tensor optimizer (simulated)",
    "leak": "memory leak with known truth (simulated)",
    "oom": "out of memory in pieces (simulated, memory only)",
    "cpu_job/recording": "a real training job on the CPU",
}


def sample_path(name: str) -> str:
    """Where a shipped recording lies."""
    return str(shipped_folder("sample_traces") / name)


def sample_name(path: str) -> str:
    """The name of a shipped recording by its place; empty for any other path."""
    place = Path(path).resolve() if "://" not in path else None
    return next((name for name in SAMPLES if Path(sample_path(name)).resolve() == place), "")


def default_path(sample: str = SAMPLE) -> str:
    """What the server was started on, or a sample."""
    return os.environ.get(RECORDING) or sample_path(sample)


def chosen_path(sample: str = SAMPLE) -> str:
    """What the address asks for (Voila), or was last chosen here (JupyterLab); else the default."""
    if in_voila():
        asked = parse_qs(os.environ.get("QUERY_STRING", "")).get("recording")
        return _sample_or_path(asked[0]) if asked else default_path(sample)
    try:
        chosen = json.loads(_memory().read_text(encoding="utf-8"))
        path = str(chosen["path"])
    except (OSError, ValueError, KeyError, TypeError):
        return default_path(sample)
    return path


def choose(path: str) -> None:
    """Remember a choice for the other notebooks of this server.

    Not in Voila, where every visitor has their own and the address says which.
    """
    if in_voila():
        return
    memory = _memory()
    memory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    memory.write_text(json.dumps({"path": path}), encoding="utf-8")


def open_chosen(sample: str = SAMPLE) -> Session:
    """The session that the start page chose, or a sample where nothing was chosen.

    What takes long shows how far it is beneath the cell; interrupt the kernel to stop it.

    Raises
    ------
    LoadError
        If it cannot be read any more.
    """
    with shown_progress() as report:
        return open_path(chosen_path(sample), report)


def open_path(path: str, report: Report | None = None) -> Session:
    """Load a path that this server may show.

    Parameters
    ----------
    path : str
        A file, folder or URL.
    report : callable, optional
        Called with the share done; what it raises stops the load.

    Raises
    ------
    MaiprofError
        If it lies outside what the server was told to serve, or cannot be read.
    """
    return maiprof_nb.load(allowed(path), report=report)


def allowed(path: str) -> str:
    """The path itself, if it lies below the served root or no root is set.

    A dashboard that strangers open must not become a way to read the server's disk.

    Raises
    ------
    MaiprofError
        If it does not.
    """
    if not path.strip():
        raise LoadError("no path was given", remedy="Give a file, a folder or a URL")
    root = os.environ.get(ROOT)
    if root is None:
        return path
    refused = MaiprofError(
        "this server does not show that place",
        where=path,
        remedy="Choose a sample or upload the files; whoever runs the server can start it on "
        "the folder with: maiprof serve FOLDER",
    )
    if "://" in path:
        if ".." not in path and f"{path}/".startswith(f"{root.rstrip('/')}/"):
            return path
        raise refused
    real = Path(path).resolve()
    if any(real.is_relative_to(place.resolve()) for place in _served(Path(root))):
        return str(real)
    raise refused


def _served(root: Path) -> list[Path]:
    """Places a visitor may read: the root, the samples, and this kernel's own uploads."""
    return [root, shipped_folder("sample_traces"), *(Path(area) for area in upload_areas)]


upload_areas: list[str] = []


def in_voila() -> bool:
    """Whether a server for visitors runs this, and not a notebook of one's own."""
    return os.environ.get("SERVER_SOFTWARE", "").startswith("voila")


def _sample_or_path(asked: str) -> str:
    return sample_path(asked) if asked in SAMPLES else asked


def _memory() -> Path:
    """One file a server: a new server starts on what it was started with."""
    server = os.environ.get("JPY_PARENT_PID", "0")
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return Path(base) / f"maiprof-{os.getuid()}" / f"chosen-{server}.json"
