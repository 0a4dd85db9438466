"""Files from the visitor's machine, in pieces that every server accepts."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from maiprof_widgets.views._static import module, styles

CHUNK_BYTES = 4 * 2**20
MAX_BYTES = 8 * 2**30


class UploadView(anywidget.AnyWidget):
    """A file picker; `folder` is set when every chosen file has arrived.

    Attributes
    ----------
    folder : str
        Where the last complete upload lies; empty before.
    status : str
        How far it is, or what went wrong.

    Notes
    -----
    Browser and kernel exchange one piece of 4 MiB at a time and wait for each to be
    acknowledged: a single larger message would close the connection without a word.
    """

    _esm = module("upload.js")
    _css = styles("dashboard.css")  # the start page needs it before anything is open

    chunk_bytes = traitlets.Int(CHUNK_BYTES).tag(sync=True)
    status = traitlets.Unicode("").tag(sync=True)
    folder = traitlets.Unicode("")

    def __init__(self) -> None:
        super().__init__()
        self._area = tempfile.TemporaryDirectory(prefix="maiprof-upload-")
        self._count = 0
        self._written = 0
        self.on_msg(self._received)

    @property
    def area(self) -> str:
        """The folder below which uploads lie; gone with the kernel."""
        return self._area.name

    def _received(self, _widget: Any, message: dict[str, Any], buffers: list[Any]) -> None:
        kind = message.get("kind")
        try:
            if kind == "begin":
                self._begin()
            elif kind == "piece":
                self._append(str(message.get("name", "")), buffers[0])
            elif kind == "end":
                self.folder = str(self._target())
        except OSError as problem:
            self.status = (
                f"The upload failed: {problem}. Copy the file to the server and give its path."
            )
            self.send({"kind": "stop"})
            return
        self.send({"kind": "next"})

    def _begin(self) -> None:
        self._count += 1
        self._written = 0
        self._target().mkdir()

    def _target(self) -> Path:
        return Path(self._area.name) / f"upload {self._count}"

    def _append(self, name: str, piece: Any) -> None:
        self._written += len(piece)
        if self._written > MAX_BYTES:
            raise OSError(f"more than {MAX_BYTES // 2**30} GiB")
        with (self._target() / _plain(name)).open("ab") as file:
            file.write(piece)


def _plain(name: str) -> str:
    """The last part of a name only: nothing is written outside the folder."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1].replace("\0", "")
    return last if last.strip(". ") else "upload"
