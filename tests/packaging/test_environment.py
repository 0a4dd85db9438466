"""environment.yml and pyproject.toml name the same versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

# The packages the environment was asked to have, by their names on conda-forge.
ASKED_FOR = {
    "python",
    "jupyterlab",
    "ipywidgets",
    "plotly",
    "pandas",
    "pytorch",
    "pynvml",
    "voila",
    "pip",
}
# Not ours by the same name: conda's own Python, what pip installs, and conda's other names.
WITHOUT_COUNTERPART = {"python", "pip", "pytorch", "pynvml"}
EXTRAS = ("notebook", "collect")


@pytest.fixture(scope="module")
def dependencies(repo: Path) -> list[Any]:
    content = yaml.safe_load((repo / "environment.yml").read_text())
    listed: list[Any] = content["dependencies"]
    return listed


@pytest.fixture(scope="module")
def conda(dependencies: list[Any]) -> dict[str, SpecifierSet]:
    return bounds(entry for entry in dependencies if isinstance(entry, str))


@pytest.fixture(scope="module")
def ours(pyproject: dict[str, Any]) -> dict[str, SpecifierSet]:
    extras = pyproject["project"]["optional-dependencies"]
    return bounds(
        [*pyproject["project"]["dependencies"], *(line for name in EXTRAS for line in extras[name])]
    )


def bounds(lines: Any) -> dict[str, SpecifierSet]:
    parsed = [Requirement(line) for line in lines]
    # What only an older Python needs would bind conda's; it comes by pip.
    return {r.name: r.specifier for r in parsed if r.marker is None}


def test_what_was_asked_for_is_there(conda: dict[str, SpecifierSet]) -> None:
    assert set(conda) >= ASKED_FOR


def test_same_packages_and_bounds(
    conda: dict[str, SpecifierSet], ours: dict[str, SpecifierSet]
) -> None:
    shared = {name: bound for name, bound in conda.items() if name not in WITHOUT_COUNTERPART}
    expected = {name: bound for name, bound in ours.items() if name != "nvidia-ml-py"}
    assert shared == expected


def test_same_python(conda: dict[str, SpecifierSet], pyproject: dict[str, Any]) -> None:
    assert conda["python"] == SpecifierSet(pyproject["project"]["requires-python"])


def test_the_project_itself_comes_by_pip(dependencies: list[Any]) -> None:
    (by_pip,) = [entry["pip"] for entry in dependencies if isinstance(entry, dict)]
    assert by_pip == [f"-e .[{','.join(EXTRAS)}]"]
