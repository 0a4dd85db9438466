"""Real JupyterLab and Voila on free loopback ports, away from the user's own settings."""

from __future__ import annotations

import http.client
import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from maiprof_nb.cli import lab, serve
from maiprof_nb.cli._serving import environment, written

IP = "127.0.0.1"
REPO = Path(__file__).resolve().parents[2]
START_TIMEOUT_S = 90
END_TIMEOUT_S = 20
NO_CHANGES: Mapping[str, object] = {}


@dataclass(frozen=True)
class Server:
    """A server that answers; ``url`` ends in a slash."""

    url: str
    token: str
    root: Path
    log: Path
    pid: int

    def page(self, path: str = "", **query: str) -> str:
        """Address of a page, with the token where the server asks for one."""
        if self.token:
            query["token"] = self.token
        text = "&".join(f"{key}={value}" for key, value in query.items())
        return f"{self.url}{path}" + (f"?{text}" if text else "")


@contextmanager
def jupyterlab(root: Path, home: Path, *, recording: str) -> Iterator[Server]:
    """JupyterLab as ``maiprof lab`` starts it, on the notebooks of ``root``."""
    port = unused_port()
    token = secrets.token_hex(16)
    command = lab.command(root / "start.ipynb", root=root, ip=IP, port=port, open_browser=False)
    with written(lab.SETTINGS_FILE, lab.settings()) as folder:
        env = {**_environment(home, recording, folder), "JUPYTER_TOKEN": token}
        with _running(command, env, home, port, alive="/api") as (pid, log):
            yield Server(f"http://{IP}:{port}/", token, root, log, pid)


@contextmanager
def voila(
    notebook: Path, home: Path, *, recording: str, changes: Mapping[str, object] = NO_CHANGES
) -> Iterator[Server]:
    """Voila as ``maiprof serve`` starts it, on one notebook; ``changes`` are other settings."""
    port = unused_port()
    with written(serve.SETTINGS_FILE, {**serve.settings(ip=IP, port=port), **changes}) as folder:
        env = _environment(home, recording, folder)
        if recording:
            env[serve.ROOT_VARIABLE] = serve.kernel_environment(recording, folder)[
                serve.ROOT_VARIABLE
            ]
        command = serve.command(notebook)
        with _running(command, env, home, port, alive=serve.STATIC_FILE) as (pid, log):
            yield Server(f"http://{IP}:{port}/", "", notebook.parent, log, pid)


def unused_port() -> int:
    """A port that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind((IP, 0))
        return int(probe.getsockname()[1])


def _environment(home: Path, recording: str, settings: Path) -> dict[str, str]:
    """The product's own environment, with a home that nobody else uses."""
    inherited = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    return {
        **environment(recording, settings),
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "JUPYTER_CONFIG_DIR": str(home / "jupyter-config"),
        "JUPYTER_DATA_DIR": str(home / "jupyter-data"),
        "JUPYTER_RUNTIME_DIR": str(home / "jupyter-runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "lab-settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "lab-workspaces"),
        "IPYTHONDIR": str(home / "ipython"),
        "PYTHONPATH": os.pathsep.join([str(REPO), str(REPO / "widgets"), *inherited]),
    }


@contextmanager
def _running(
    command: Sequence[str], env: dict[str, str], home: Path, port: int, *, alive: str
) -> Iterator[tuple[int, Path]]:
    log = home / "server.log"
    with log.open("wb") as sink:
        # A session of its own: what is ended below is this server and its kernels, nothing else.
        server = subprocess.Popen(
            command, env=env, cwd=home, stdout=sink, stderr=sink, start_new_session=True
        )
    try:
        _wait_until_up(server, port, alive, log)
        yield server.pid, log
    finally:
        _end(server)


def _wait_until_up(server: subprocess.Popen[bytes], port: int, path: str, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise RuntimeError(f"the server ended at its start:\n{log.read_text()[-3000:]}")
        connection = http.client.HTTPConnection(IP, port, timeout=5)
        try:
            connection.request("GET", path)
            connection.getresponse().read()
        except OSError:
            time.sleep(0.1)
        else:
            return
        finally:
            connection.close()
    raise RuntimeError(f"no answer within {START_TIMEOUT_S} s:\n{log.read_text()[-3000:]}")


def _end(server: subprocess.Popen[bytes]) -> None:
    """Ask the server to end, which ends its kernels; force it only if it does not."""
    if server.poll() is None:
        server.terminate()
        try:
            server.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()
