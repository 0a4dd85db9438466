"""What ``maiprof lab`` and ``maiprof serve`` share: the recording, the environment, the server."""

from __future__ import annotations

import argparse
import importlib.util
import ipaddress
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from maiprof_nb.errors import LoadError, MaiprofError
from maiprof_nb.shipped import SAMPLE, shipped_folder

RECORDING_VARIABLE = "MAIPROF_RECORDING"

# An upload travels in one message; the default of 10 MB cuts the connection without a word.
MAX_MESSAGE_BYTES = 256 * 2**20


def add_options(parser: argparse.ArgumentParser, *, port: int) -> None:
    """Add the recording and the address, which both verbs take."""
    parser.add_argument(
        "path",
        nargs="?",
        metavar="PATH",
        help="a recording: file, folder or URL (default: the sample that comes with maiprof_nb)",
    )
    parser.add_argument("--port", type=int, default=port, help="port to listen on (%(default)s)")
    parser.add_argument(
        "--ip", default="127.0.0.1", help="address to listen on (%(default)s: this machine only)"
    )
    parser.add_argument(
        "--no-browser", action="store_true", help="print the address instead of opening a browser"
    )


def recording(path: str | None) -> str:
    """The recording to open, absolute if it is a local path.

    Raises
    ------
    LoadError
        If there is no such file or folder.
    """
    if path is None:
        return str(shipped_folder("sample_traces") / SAMPLE)
    if "://" in path:
        return path
    local = Path(path).expanduser().resolve()
    if not local.exists():
        raise LoadError("there is no such file or folder", where=path, remedy="Check the spelling")
    return str(local)


def require(module: str) -> None:
    """Refuse in words where the extra that brings ``module`` is not installed."""
    if importlib.util.find_spec(module) is None:
        raise MaiprofError(
            f"{module} is not installed",
            remedy='Install it with: pip install "maiprof-nb[notebook]"',
        )


def kernel_settings() -> dict[str, object]:
    """Encrypt what kernels send, where Jupyter can: others on this machine could listen."""
    import zmq  # noqa: PLC0415 - with Jupyter only
    from jupyter_client.manager import KernelManager  # noqa: PLC0415

    if not zmq.has("curve") or not KernelManager.class_traits().get("transport_encryption"):
        return {}
    return {"KernelManager": {"transport_encryption": "auto"}}


@contextmanager
def written(name: str, settings: Mapping[str, object]) -> Iterator[Path]:
    """A folder that holds ``settings`` as ``name``, for as long as a server may read it.

    On the command line the same settings would be listed to everyone and warned about: lists
    and nested values are deprecated there.
    """
    with tempfile.TemporaryDirectory(prefix="maiprof-") as folder:
        (Path(folder) / name).write_text(json.dumps(settings))
        yield Path(folder)


def environment(chosen: str, settings: Path) -> dict[str, str]:
    """Environment of a server whose kernels open the recording ``chosen``.

    ``settings`` is a folder of settings that go before those in the user's home.
    """
    ours = jupyter_folder()
    return {
        **os.environ,
        RECORDING_VARIABLE: chosen,
        # The template and the settings come from the package, so that an editable clone has them.
        "JUPYTER_PATH": _before(ours, "JUPYTER_PATH"),
        "JUPYTER_CONFIG_PATH": _before(
            f"{settings}{os.pathsep}{ours / 'config'}", "JUPYTER_CONFIG_PATH"
        ),
        # The kernel is this Python, whatever kernels the user's home has.
        "JUPYTER_PREFER_ENV_PATH": "1",
    }


def jupyter_folder() -> Path:
    """The package's folder of Jupyter data; found without importing the views."""
    spec = importlib.util.find_spec("maiprof_widgets")
    if spec is None or not spec.submodule_search_locations:
        raise MaiprofError(
            "the package maiprof_widgets is not installed",
            remedy='Install it with: pip install "maiprof-nb[notebook]"',
        )
    return Path(next(iter(spec.submodule_search_locations))).resolve() / "jupyter"


def _before(folder: Path | str, variable: str) -> str:
    present = os.environ.get(variable)
    return f"{folder}{os.pathsep}{present}" if present else str(folder)


def is_loopback(ip: str) -> bool:
    """Whether only this machine can reach a server that listens on ``ip``."""
    if ip == "localhost":
        return True
    try:
        return ipaddress.ip_address(ip).is_loopback
    except ValueError:
        return False


def has_display() -> bool:
    """Whether a browser with a window can be opened here."""
    if not sys.platform.startswith("linux"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def run_until_end(
    command: Sequence[str],
    env: Mapping[str, str],
    *,
    when_started: Callable[[subprocess.Popen[bytes]], None] = lambda _: None,
) -> int:
    """Run a server in the foreground and return its exit status.

    Ctrl-C reaches the server by itself, being sent to the whole foreground group; a SIGTERM
    sent to this process alone is passed on, so that kernels are ended either way.
    """
    server = subprocess.Popen(command, env=dict(env))  # noqa: S603 - built here, no shell

    def pass_on(number: int, _frame: FrameType | None) -> None:
        server.send_signal(number)

    before = signal.signal(signal.SIGTERM, pass_on)
    try:
        when_started(server)
        return _wait(server)
    finally:
        signal.signal(signal.SIGTERM, before)
        if server.poll() is None:
            server.terminate()
            server.wait()


def _wait(server: subprocess.Popen[bytes]) -> int:
    while True:
        try:
            return server.wait()
        except KeyboardInterrupt:
            continue  # the server got it too and is ending its kernels
