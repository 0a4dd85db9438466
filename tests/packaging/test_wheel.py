"""What the wheel holds, and that it works where there is no clone."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

PACKAGES = {"maiprof_nb": "maiprof_nb", "maiprof_widgets": "widgets/maiprof_widgets"}
SHARED = ("notebooks", "sample_traces")
NOT_SHIPPED = {"__pycache__", ".ipynb_checkpoints"}


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def files_below(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and not NOT_SHIPPED & set(path.parts) and not path.name.startswith(".")
    }


def test_two_import_names_and_no_other(names: set[str]) -> None:
    """``widgets`` above all must not be one: others have a package of that name."""
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if ".d" not in top} == set(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_file_of_the_package_is_in_it(package: str, names: set[str], repo: Path) -> None:
    expected = {f"{package}/{name}" for name in files_below(repo / PACKAGES[package])}
    assert f"{package}/py.typed" in expected
    assert expected - names == set()


@pytest.mark.parametrize("folder", SHARED)
def test_notebooks_and_samples_are_in_it(folder: str, names: set[str], repo: Path) -> None:
    shared = {name.split(f"/share/maiprof_nb/{folder}/")[-1] for name in names if ".data/" in name}
    assert files_below(repo / folder) - shared == set()


def test_check_wheel_contents(wheel: Path) -> None:
    command = ["check_wheel_contents", "--no-config", "--toplevel", ",".join(PACKAGES), str(wheel)]
    done = subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_installed_wheel_finds_what_it_ships(wheel: Path, tmp_path: Path, repo: Path) -> None:
    """In an environment of its own, which borrows only the dependencies of this one."""
    python = tmp_path / "bin" / "python"
    run(sys.executable, "-m", "venv", "--without-pip", str(tmp_path))
    run(sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", str(wheel))
    (site_packages,) = tmp_path.glob("lib/*/site-packages")
    # Not as a .pth file: this environment's own would bring the clone in again.
    borrowed = sysconfig.get_path("purelib")
    found = run(
        str(python),
        "-c",
        "import sys\n"
        f"sys.path.append({borrowed!r})\n"
        "from maiprof_nb.cli._serving import jupyter_folder\n"
        "from maiprof_nb.shipped import in_clone, shipped_folder\n"
        "print(in_clone())\n"
        "print(shipped_folder('notebooks'))\n"
        "print(shipped_folder('sample_traces'))\n"
        "print(jupyter_folder() / 'voila/templates/maiprof/index.html.j2')\n",
        cwd=tmp_path,
    ).splitlines()
    assert found[0] == "False"
    assert all(Path(line).is_relative_to(tmp_path) and Path(line).exists() for line in found[1:])
    assert Path(found[3]).is_relative_to(site_packages)


def run(*command: str, cwd: Path | None = None) -> str:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
