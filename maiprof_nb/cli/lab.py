"""``maiprof lab [PATH]``: the guided notebooks in JupyterLab."""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import sys
from pathlib import Path

from maiprof_nb.cli._serving import (
    MAX_MESSAGE_BYTES,
    add_options,
    environment,
    has_display,
    kernel_settings,
    recording,
    require,
    run_until_end,
    written,
)
from maiprof_nb.shipped import in_clone, shipped_folder

GUIDES = "guides"
START = "00_start.ipynb"
SETTINGS_FILE = "jupyter_config.json"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "lab",
        help="open the guided notebooks in JupyterLab",
        description="Open the guided notebooks in JupyterLab on a recording.",
    )
    add_options(parser, port=8888)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Start JupyterLab and wait for its end."""
    require("jupyterlab")
    chosen = recording(args.path)
    notebook = _working_copy()
    with written(SETTINGS_FILE, settings()) as folder:
        print(f"JupyterLab with the guided notebooks on {chosen}\nCtrl-C ends it.", flush=True)
        return run_until_end(
            command(
                notebook,
                root=_root_of(notebook),
                ip=args.ip,
                port=args.port,
                open_browser=not args.no_browser and has_display(),
            ),
            environment(chosen, folder),
        )


def command(notebook: Path, *, root: Path, ip: str, port: int, open_browser: bool) -> list[str]:
    """The command that opens ``notebook`` in JupyterLab.

    The workspace is our own, so that neither the user's open tabs come along nor ours stay.
    """
    options = [
        f"--ServerApp.ip={ip}",
        f"--ServerApp.port={port}",
        f"--ServerApp.root_dir={root}",
        f"--ServerApp.open_browser={open_browser}",
        f"--LabApp.default_url=/lab/workspaces/maiprof/tree/{notebook.relative_to(root).as_posix()}",
    ]
    if _is_root():
        options.append("--allow-root")  # else Jupyter refuses; the token still guards the server
    return [sys.executable, "-m", "jupyterlab", *options]


def settings() -> dict[str, object]:
    """What makes JupyterLab ask no other host, and print the address and little else."""
    quiet = {"log_level": logging.WARNING}
    return {
        **kernel_settings(),
        "JupyterApp": {"answer_yes": True},  # one Ctrl-C is enough
        "ServerApp": {
            **quiet,
            "tornado_settings": {"websocket_max_message_size": MAX_MESSAGE_BYTES},
            # Voila's preview would start with its own template, which asks a CDN.
            "jpserver_extensions": {"voila.server_extension": False},
        },
        "LabApp": {
            **quiet,
            "news_url": None,
            "check_for_updates_class": "jupyterlab.handlers.announcements.NeverCheckForUpdate",
            "extension_manager": "readonly",
        },
    }


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def _working_copy() -> Path:
    """The start notebook, where its outputs may be saved.

    In a clone that is the clone's own. An installed package's notebooks are copied beside the
    user's work; what is there already stays as it is.
    """
    guides = shipped_folder("notebooks") / GUIDES
    if in_clone():
        return guides / START
    copy = Path.cwd() / "maiprof_guides"
    copy.mkdir(exist_ok=True)
    for notebook in guides.glob("*.ipynb"):
        if not (copy / notebook.name).exists():
            shutil.copy(notebook, copy)
    return copy / START


def _root_of(notebook: Path) -> Path:
    """What the file browser shows: the clone, or the user's working folder."""
    return notebook.parents[2] if in_clone() else notebook.parents[1]
