"""What ``maiprof lab`` and ``maiprof serve`` start, without starting it."""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from maiprof_nb import shipped
from maiprof_nb.cli import _serving, lab, serve
from maiprof_nb.errors import LoadError, MaiprofError
from maiprof_nb.shipped import shipped_folder


def parse(module: object, *arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    module.add_parser(parser.add_subparsers())  # type: ignore[attr-defined]
    return parser.parse_args(arguments)


def test_a_recording_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's kernels run in another folder than the command."""
    (tmp_path / "trace.json").touch()
    monkeypatch.chdir(tmp_path)
    assert _serving.recording("trace.json") == str(tmp_path / "trace.json")


def test_a_url_stays_as_it_is() -> None:
    assert _serving.recording("s3://bucket/job") == "s3://bucket/job"


def test_without_a_path_it_is_the_sample() -> None:
    expected = shipped_folder("sample_traces") / "case_study" / "before"
    assert _serving.recording(None) == str(expected)


def test_what_is_not_there_is_refused_before_anything_starts() -> None:
    with pytest.raises(LoadError, match=r"^nowhere: there is no such file"):
        _serving.recording("nowhere")


def test_a_missing_server_is_named_with_its_remedy() -> None:
    with pytest.raises(MaiprofError, match=r"jupyterlab2 is not installed.*maiprof-nb\[notebook\]"):
        _serving.require("jupyterlab2")


@pytest.mark.parametrize(
    ("ip", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),  # noqa: S104 - compared, not listened on
        ("192.168.0.2", False),
        ("", False),
        ("some.host", False),
    ],
)
def test_which_addresses_are_this_machine_only(ip: str, expected: bool) -> None:
    assert _serving.is_loopback(ip) is expected


@pytest.mark.parametrize("module", [lab, serve])
def test_by_default_only_this_machine_can_connect(module: object) -> None:
    assert parse(module, module.__name__.split(".")[-1]).ip == "127.0.0.1"  # type: ignore[attr-defined]


def test_settings_of_the_project_come_before_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "/the/users")
    env = _serving.environment("/a/recording", tmp_path)
    assert env["MAIPROF_RECORDING"] == "/a/recording"
    first, second, third = env["JUPYTER_CONFIG_PATH"].split(os.pathsep)
    assert first == str(tmp_path)
    news = json.loads((Path(second) / "labconfig/default_setting_overrides.json").read_text())
    assert news["@jupyterlab/apputils-extension:notification"]["fetchNews"] == "false"
    assert third == "/the/users"


def test_the_template_is_found_where_jupyter_will_look(tmp_path: Path) -> None:
    env = _serving.environment("", tmp_path)
    folder = Path(env["JUPYTER_PATH"].split(os.pathsep)[0])
    assert (folder / "voila/templates" / serve.TEMPLATE / "index.html.j2").is_file()


def test_settings_are_gone_with_the_server() -> None:
    with _serving.written("voila.json", {"Voila": {"token": "x"}}) as folder:
        assert json.loads((folder / "voila.json").read_text()) == {"Voila": {"token": "x"}}
    assert not folder.exists()


def test_a_port_in_use_is_passed_over() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert serve.free_port("127.0.0.1", port) > port


def test_no_port_is_an_error_with_a_remedy() -> None:
    """203.0.113.1 is reserved for documentation, so no machine has it."""
    with pytest.raises(MaiprofError, match=r"203\.0\.113\.1: no port from 8866"):
        serve.free_port("203.0.113.1", 8866)


def test_a_server_that_ends_is_not_waited_for() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert serve.wait_for(ended, "127.0.0.1", 1) is False


def test_sockets_to_other_hosts_are_forbidden_on_this_machine() -> None:
    policy = serve.content_security_policy("127.0.0.1")
    assert "ws: " not in policy
    assert "http" not in policy


@pytest.mark.parametrize("status", [0, 7])
def test_the_servers_exit_status_is_ours(status: int) -> None:
    command = [sys.executable, "-c", f"raise SystemExit({status})"]
    assert _serving.run_until_end(command, os.environ) == status


def test_sigterm_is_passed_on() -> None:
    """Else the server and its kernels would go on without the command that started them."""
    child = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\n"
        "time.sleep(60)"
    )
    started: list[float] = []

    def terminate(_server: subprocess.Popen[bytes]) -> None:
        started.append(time.monotonic())
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGTERM)).start()

    status = _serving.run_until_end(
        [sys.executable, "-c", child], os.environ, when_started=terminate
    )
    assert status == 9
    assert time.monotonic() - started[0] < 30


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation from a wheel, with one guide; the working folder is empty."""
    guides = tmp_path / "prefix" / "share" / "maiprof_nb" / "notebooks" / "guides"
    guides.mkdir(parents=True)
    (guides / "00_start.ipynb").write_text("shipped")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr(shipped, "_CLONE", tmp_path / "site-packages")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    return tmp_path / "work"


def test_an_installations_guides_are_copied_to_the_work(installed: Path) -> None:
    assert lab._working_copy() == installed / "maiprof_guides" / "00_start.ipynb"
    assert lab._working_copy().read_text() == "shipped"


def test_a_copy_that_the_user_changed_is_kept(installed: Path) -> None:
    lab._working_copy().write_text("mine")
    assert lab._working_copy().read_text() == "mine"


def test_what_was_not_shipped_is_named(installed: Path) -> None:
    with pytest.raises(MaiprofError, match="the folder sample_traces that comes with maiprof_nb"):
        shipped_folder("sample_traces")
