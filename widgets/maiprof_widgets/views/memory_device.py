"""Whose memory a view shows, where the session knows of several."""

from __future__ import annotations

from collections import Counter
from typing import Any

import ipywidgets

from maiprof_nb.analysis.active_memory import MemoryDevice, memory_devices
from maiprof_nb.session import Session
from maiprof_widgets import escaping
from maiprof_widgets.link import LinkState

WIDE = {"width": "max-content", "max_width": "100%"}
Options = list[tuple[str, MemoryDevice]]


def device_options(
    session: Session, ranks: tuple[int, ...] | None = None, *, kind: str | None = None
) -> Options:
    """Every memory of the session with a label; those that share one also with their file."""
    devices = [
        one
        for one in memory_devices(session)
        if (ranks is None or one.rank in (None, *ranks)) and kind in (None, one.kind)
    ]
    count = Counter(one.label for one in devices)
    return [
        (one.label if count[one.label] == 1 else f"{one.label}, {_file(session, one)}", one)
        for one in devices
    ]


def _file(session: Session, device: MemoryDevice) -> str:
    name = session.recordings[device.recording].source.replace("\\", "/").rsplit("/", 1)[-1]
    return escaping.visible(name)


class MemoryDeviceChoice(ipywidgets.Dropdown):
    """Follows ``link.ranks``; out of sight where there is no choice.

    Parameters
    ----------
    session : Session
        What was recorded.
    link : LinkState
        Shared with the other views.
    """

    def __init__(self, session: Session, link: LinkState) -> None:
        self.session, self.link = session, link
        super().__init__(options=self._offered(), layout=dict(WIDE))
        self._hide()
        link.observe(self._on_ranks, "ranks")

    @property
    def device(self) -> MemoryDevice | None:
        """Whose memory; None where nothing is known of any."""
        found: MemoryDevice | None = self.value
        return found

    def choose(self, device: MemoryDevice | None) -> None:
        """Choose one that is offered; any other changes nothing."""
        if device in [one for _, one in self._offered()]:
            self.value = device

    def _offered(self) -> Options:
        return device_options(self.session, self.link.ranks)

    def _on_ranks(self, _change: Any) -> None:
        before = self.value
        self.options = self._offered()  # chooses the first
        self.choose(before)
        self._hide()

    def _hide(self) -> None:
        self.layout.display = None if len(self._offered()) > 1 else "none"
