"""``maiprof serve [PATH]``: the dashboard in Voila."""

from __future__ import annotations

import argparse
import http.client
import logging
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
import webbrowser
from pathlib import Path

from maiprof_nb.cli._serving import (
    MAX_MESSAGE_BYTES,
    add_options,
    environment,
    has_display,
    is_loopback,
    kernel_settings,
    recording,
    require,
    run_until_end,
    written,
)
from maiprof_nb.errors import MaiprofError
from maiprof_nb.shipped import shipped_folder

DASHBOARD = "dashboards/overview.ipynb"
TEMPLATE = "maiprof"
SETTINGS_FILE = "voila.json"
ROOT_VARIABLE = "MAIPROF_ROOT"
STATIC_FILE = "/voila/static/voila.js"  # every page asked for would start a kernel
PORTS_TRIED = 50
START_TIMEOUT_S = 60

# A closed tab leaves its kernel running; these seconds later it is ended.
IDLE_KERNEL_S = 300
CULL_INTERVAL_S = 30

# Without the first of them no widget connects; others would only be loaded and never used.
LAB_EXTENSIONS = [
    "@voila-dashboards/widgets-manager8",
    "@jupyter-widgets/jupyterlab-manager",
    "anywidget",
]

CELL_ERROR = "The reason is in the window that the dashboard was started from."


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "serve",
        help="serve the dashboard with Voila",
        description="Serve the dashboard on a recording; every visitor gets a kernel of their own.",
    )
    add_options(parser, port=8866)
    parser.add_argument("--theme", choices=["light", "dark"], default="light", help="(%(default)s)")
    parser.add_argument(
        "--token",
        action="store_true",
        help="ask visitors for a token (always so where other machines can reach the server)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Start Voila and wait for its end."""
    require("voila")
    chosen = recording(args.path)
    port = free_port(args.ip, args.port)
    # A visitor can open whatever lies beside the recording, so strangers need the token.
    token = secrets.token_urlsafe(24) if args.token or not is_loopback(args.ip) else ""
    url = f"http://{_host(args.ip)}:{port}/" + (f"?token={token}" if token else "")
    options = settings(ip=args.ip, port=port, theme=args.theme, token=token)

    def announce(server: subprocess.Popen[bytes]) -> None:
        if wait_for(server, args.ip, port):
            print(f"Dashboard on {chosen}\n  {url}\nCtrl-C ends it.", flush=True)
            if not args.no_browser and has_display():
                webbrowser.open(url)

    with written(SETTINGS_FILE, options) as folder:
        return run_until_end(
            command(shipped_folder("notebooks") / DASHBOARD),
            kernel_environment(chosen, folder),
            when_started=lambda server: threading.Thread(
                target=announce, args=(server,), daemon=True
            ).start(),
        )


def kernel_environment(chosen: str, settings: Path) -> dict[str, str]:
    """What `environment` gives, and the place beyond which visitors may read nothing."""
    root = chosen
    if "://" not in chosen:
        local = Path(chosen)
        root = str(local if local.is_dir() else local.parent)
    return {**environment(chosen, settings), ROOT_VARIABLE: root}


def command(notebook: Path) -> list[str]:
    """The command that serves ``notebook``; all else is in the settings."""
    return [sys.executable, "-m", "voila", str(notebook)]


def settings(*, ip: str, port: int, theme: str = "light", token: str = "") -> dict[str, object]:
    """What makes Voila a dashboard of ours that loads nothing from another host."""
    return {
        "Voila": {
            "ip": ip,
            "port": port,
            "port_retries": 0,  # the address that was printed is the address
            "open_browser": False,
            "log_level": logging.WARNING,
            "token": token,
            "tornado_settings": {
                "headers": {
                    "Content-Security-Policy": content_security_policy(ip),
                    "X-Content-Type-Options": "nosniff",
                    "Referrer-Policy": "no-referrer",  # the address may hold the token
                },
                "websocket_max_message_size": MAX_MESSAGE_BYTES,
                # A page of another site must not reach this machine by a name of its own.
                "allow_remote_access": not is_loopback(ip),
                "local_hostnames": ["localhost"],
            },
        },
        "VoilaConfiguration": {
            "template": TEMPLATE,
            "allow_template_override": "NO",
            "theme": theme,
            "extension_allowlist": LAB_EXTENSIONS,
            "file_allowlist": [],
        },
        "VoilaExecutor": {
            "cell_error_instruction": CELL_ERROR,
            "cell_timeout_instruction": CELL_ERROR,
        },
        **kernel_settings(),
        "MappingKernelManager": {
            "cull_idle_timeout": IDLE_KERNEL_S,
            "cull_interval": CULL_INTERVAL_S,
        },
    }


def content_security_policy(ip: str) -> str:
    """What a page of the dashboard may load: what this server sends, and nothing else.

    Widgets arrive as modules in blobs and the widget manager compiles code, hence ``blob:`` and
    ``unsafe-eval``; browsers differ in whether ``'self'`` covers a websocket, hence ``ws:``.
    """
    sockets = " ".join(f"ws://{host}:*" for host in ("localhost", "127.0.0.1"))
    if not is_loopback(ip):
        sockets = "ws: wss:"
    return "; ".join(
        [
            "default-src 'self'",
            "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob: data:",
            "style-src 'self' 'unsafe-inline' blob: data:",
            "img-src 'self' blob: data:",
            "font-src 'self' data:",
            "worker-src 'self' blob:",
            f"connect-src 'self' blob: data: {sockets}",
            "frame-ancestors 'self'",
            "form-action 'self'",
            "base-uri 'self'",
        ]
    )


def free_port(ip: str, wanted: int) -> int:
    """``wanted``, or the next port after it that nobody listens on."""
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    for port in range(wanted, wanted + PORTS_TRIED):
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            if os.name == "posix":  # elsewhere the option would let a taken port pass
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((ip, port))
            except OSError:
                continue
            return port
    raise MaiprofError(
        f"no port from {wanted} to {wanted + PORTS_TRIED - 1} can be listened on",
        where=ip,
        remedy="Give another one with --port, or another address with --ip",
    )


def wait_for(server: subprocess.Popen[bytes], ip: str, port: int) -> bool:
    """Wait until the server answers; False if it ends before, or never does."""
    host = _host(ip).strip("[]")
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and server.poll() is None:
        connection = http.client.HTTPConnection(host, port, timeout=5)
        try:
            connection.request("GET", STATIC_FILE)
            return connection.getresponse().status < http.client.INTERNAL_SERVER_ERROR
        except OSError:
            time.sleep(0.1)
        finally:
            connection.close()
    return False


def _host(ip: str) -> str:
    """What to write in an address for ``ip``; the machine's name where it means all of them."""
    if ip in ("", "0.0.0.0", "::"):  # noqa: S104 - compared, not listened on
        return socket.gethostname()
    return f"[{ip}]" if ":" in ip else ip
