"""Bytes live at one moment as boxes by call path, linked to the memory timeline."""

from __future__ import annotations

import logging
from typing import Any

import anywidget
import pandas as pd
import traitlets

from maiprof_nb import units
from maiprof_nb.analysis.memory_flame import frame_name, memory_flame
from maiprof_nb.analysis.memory_peak import MemoryPeak
from maiprof_widgets import escaping
from maiprof_widgets.link import LinkState, Selection
from maiprof_widgets.views._static import module, styles

_LOG = logging.getLogger(__name__)
_MAX_NAME = 400
_MAX_FINER = 2000
_ROOT = "threads"  # the icicle's word for a group that is no frame


class MemoryFlameView(anywidget.AnyWidget):
    """The icicle of call paths, its width in bytes.

    Parameters
    ----------
    link : LinkState
        Shared with the other views; a click sets ``link.selection`` to the stack with most
        bytes in the box, and the boxes of a chosen stack's line are outlined.

    Attributes
    ----------
    nodes : DataFrame
        As `maiprof_nb.analysis.memory_flame` gives them.
    """

    _esm = module("icicle.js")
    _css = styles("views.css")

    picture = traitlets.Dict().tag(sync=True)
    finer = traitlets.Dict().tag(sync=True)
    gaps_only = traitlets.Bool(default_value=False).tag(sync=True)
    selected = traitlets.Dict().tag(sync=True)
    theme = traitlets.Enum(("auto", "light", "dark"), default_value="auto").tag(sync=True)
    status = traitlets.Unicode("").tag(sync=True)

    def __init__(self, link: LinkState, **traits: Any) -> None:
        self.link = link
        self.nodes = pd.DataFrame()
        self._peak: MemoryPeak | None = None
        self._stacks: dict[int, int] = {}  # the stack behind each call path that was sent
        super().__init__(picture={"title": "", "unit": "bytes", "empty": " "}, **traits)
        self.on_msg(self._received)
        link.observe(lambda _change: self._show_selection(), "selection")

    def show(self, peak: MemoryPeak, title: str) -> None:
        """Show what was live at a moment."""
        self.nodes, self._peak, self._stacks = memory_flame(peak), peak, {}
        self._show_selection()
        total = int(self.nodes["size_bytes"].iloc[0])
        if not total:
            self.clear(title, "Nothing was allocated then.")
            return
        blocks = units.count(int(self.nodes["blocks"].iloc[0]))
        facts = f"{units.size(total)} in {blocks} blocks, merged by the stack that allocated them."
        self.picture = {"title": title, "facts": facts, "unit": "bytes", **self._sent(self.nodes)}

    def clear(self, title: str, sentence: str) -> None:
        """Say why there is nothing to show."""
        self.nodes, self._peak, self._stacks = pd.DataFrame(), None, {}
        self.picture = {"title": title, "unit": "bytes", "empty": sentence}

    def _show_selection(self) -> None:
        chosen, peak = self.link.selection, self._peak
        self.selected = {}
        if peak is None or chosen is None or chosen.table != "stacks":
            return
        if chosen.recording in (None, peak.log.device.recording):
            stacks = peak.log.stacks
            label = stacks.loc[stacks["stack"].eq(chosen.row).to_numpy(), "label"]
            if len(label):
                name = escaping.visible(frame_name(str(label.iloc[0])))[:_MAX_NAME]
                self.selected = {"table": "stacks", "name": name}

    def _received(self, _widget: Any, content: Any, _buffers: Any) -> None:
        if not isinstance(content, dict) or self._peak is None:
            return
        path = content.get("node")
        if content.get("kind") == "choose":
            stack = self._stacks.get(path, -1) if isinstance(path, int) else -1
            recording = self._peak.log.device.recording
            chosen = Selection("stacks", row=stack, recording=recording) if stack >= 0 else None
            self.link.selection = chosen
        elif content.get("kind") == "look" and path in self._stacks:
            finer = memory_flame(self._peak, under=path, max_nodes=_MAX_FINER)
            answer = self.finer.get("answer", 0) + 1  # else the same nodes are not sent again
            self.finer = {"answer": answer, "under": path, "nodes": self._sent(finer)}

    def _sent(self, nodes: pd.DataFrame) -> dict[str, Any]:
        self._stacks |= dict(zip(nodes["path"].tolist(), nodes["stack"].tolist(), strict=True))
        return _arrays(nodes)


def _arrays(nodes: pd.DataFrame) -> dict[str, Any]:
    """Columns for the browser, under the names of the icicle; each name once."""
    codes, texts = pd.factorize(nodes["name"])
    return {
        "names": [escaping.visible(text)[:_MAX_NAME] for text in texts],
        "name": codes.tolist(),
        "path": nodes["path"].tolist(),
        "parent": nodes["parent"].tolist(),
        "kind": nodes["kind"].replace("all", _ROOT).tolist(),
        "own": nodes["own"].tolist(),
        "total": nodes["size_bytes"].tolist(),
        "self": nodes["self_bytes"].tolist(),
        "pruned": nodes["pruned_bytes"].tolist(),
        "small": nodes["pruned"].tolist(),
        "threads": [0] * len(nodes),
        "calls": nodes["blocks"].tolist(),
    }
