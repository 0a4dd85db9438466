"""The shipped notebooks: how they are written, and that they run on any recording."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import maiprof_nb.analysis
import maiprof_nb.findings
import maiprof_widgets

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
EVERY = sorted(NOTEBOOKS.rglob("*.ipynb"))
GUIDES = sorted((NOTEBOOKS / "guides").glob("*.ipynb"))
MAX_LINES = 8
PROGRAM = {"_esm", "_css", "program"}  # of a widget's state, what is not said to anybody
PUBLIC = {
    module.__name__: set(module.__all__)
    for module in (maiprof_nb, maiprof_nb.analysis, maiprof_nb.findings, maiprof_widgets)
}


def names(paths: list[Path]) -> Any:
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.stem)


def code(path: Path) -> list[str]:
    cells = json.loads(path.read_text())["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


@names(EVERY)
def test_format_is_valid_and_as_git_compares_it_best(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    notebook = json.loads(text)
    nbformat.validate(notebook)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert text == json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    assert all(cell["id"] for cell in notebook["cells"])


@names(EVERY)
def test_nothing_of_a_run_is_stored(path: Path) -> None:
    notebook = json.loads(path.read_text())
    assert "widgets" not in notebook["metadata"]
    for cell in notebook["cells"]:
        assert cell["metadata"] == {}
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None


@names(EVERY)
def test_cells_are_short_and_define_nothing(path: Path) -> None:
    """What is worth a function is worth a place in the package."""
    forbidden = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda | ast.For
    for source in code(path):
        assert len(source.splitlines()) <= MAX_LINES, source
        found = [type(node) for node in ast.walk(ast.parse(source)) if isinstance(node, forbidden)]
        assert found == [], source


@names(EVERY)
def test_only_public_names_are_used(path: Path) -> None:
    for node in (node for source in code(path) for node in ast.walk(ast.parse(source))):
        if isinstance(node, ast.ImportFrom):
            assert {alias.name for alias in node.names} <= PUBLIC[str(node.module)]
        elif isinstance(node, ast.Import):
            assert {alias.name for alias in node.names} <= set(PUBLIC)
        elif isinstance(node, ast.Attribute):
            assert not node.attr.startswith("_")


@names(GUIDES)
def test_links_lead_to_notebooks_that_are_there(path: Path) -> None:
    text = path.read_text()
    targets = {part.split(")")[0] for part in text.split("](")[1:]}
    assert targets
    assert all((path.parent / target).exists() for target in targets if "://" not in target)


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Kernels with settings and memory of their own."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("MAIPROF_ROOT", raising=False)
    repo = NOTEBOOKS.parent
    monkeypatch.setenv("PYTHONPATH", f"{repo}{os.pathsep}{repo / 'widgets'}")
    return tmp_path


def run(paths: list[Path], folder: Path) -> str:
    """Run notebooks one after another in one kernel; all text that came out, widgets' too."""
    notebook = nbformat.read(paths[0], as_version=4)
    for path in paths[1:]:
        for cell in nbformat.read(path, as_version=4).cells:
            cell["id"] = f"{path.stem[:2]}-{cell['id']}"
            notebook.cells.append(cell)
    client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}})
    client.execute()
    assert [o for c in notebook.cells for o in c.get("outputs", []) if o.get("name")] == []
    states = notebook["metadata"]["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    parts = [
        json.dumps({name: part for name, part in model["state"].items() if name not in PROGRAM})
        for model in states.values()
    ]
    return "\n".join(parts)


@names(GUIDES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_guide_runs_on_the_case_study(
    path: Path, kernels: Path, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIPROF_RECORDING", str(samples / "case_study" / "before"))
    shown = run([path], kernels)
    assert "maiprof-status" not in shown
    assert "maiprof-missing" not in shown
    assert "Not answerable" not in shown
    # the figures of sample_traces/README.md
    expected = {
        "00": "34.0 %",
        "01": "66.0 %",
        "02": "sharded_iterrows",
        "03": "9.1",
        "04": "48 recorded steps",
        "05": "1,653 k",
        "06": "a healthy sawtooth",
    }
    assert expected[path.name[:2]] in shown


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_guides_run_on_a_job_without_a_gpu(
    kernels: Path, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIPROF_RECORDING", str(samples / "cpu_job" / "recording"))
    shown = run(GUIDES, kernels)
    assert "maiprof-status" not in shown
    assert "Not answerable" in shown
    assert "ProfilerActivity.CUDA" in shown
    assert "nvidia-smi" in shown


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("file", "remedies"),
    [
        ("memory.pickle.gz", ["Load the folder that holds", "nvidia-smi"]),
        ("gpu.csv", ["_record_memory_history", "ProfilerActivity.CPU"]),
    ],
)
def test_guides_say_what_is_missing(
    kernels: Path,
    samples: Path,
    monkeypatch: pytest.MonkeyPatch,
    file: str,
    remedies: list[str],
) -> None:
    """A snapshot alone, metrics alone: no exception, and what to record."""
    monkeypatch.setenv("MAIPROF_RECORDING", str(samples / "leak" / file))
    shown = run(GUIDES, kernels)
    assert "maiprof-status" not in shown
    assert "maiprof-missing" in shown
    for remedy in remedies:
        assert remedy in shown
