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
    gaps_only = traitlets.Bool(default_value=False).tag(sync=True)
    selected = traitlets.Dict().tag(sync=True)
    theme = traitlets.Enum(("auto", "light", "dark"), default_value="auto").tag(sync=True)
    status = traitlets.Unicode("").tag(sync=True)

    def __init__(self, link: LinkState, **traits: Any) -> None:
        self.link = link
        self.nodes = pd.DataFrame()
        self._peak: MemoryPeak | None = None
        super().__init__(picture={"title": "", "unit": "bytes", "empty": " "}, **traits)
        self.on_msg(self._received)
        link.observe(lambda _change: self._show_selection(), "selection")

    def show(self, peak: MemoryPeak, title: str) -> None:
        """Show what was live at a moment."""
        self.nodes, self._peak = memory_flame(peak), peak
        self._show_selection()
        total = int(self.nodes["size_bytes"].iloc[0])
        if not total:
            self.clear(title, "Nothing was allocated then.")
            return
        blocks = units.count(int(self.nodes["blocks"].iloc[0]))
        facts = f"{units.size(total)} in {blocks} blocks, merged by the stack that allocated them."
        self.picture = {"title": title, "facts": facts, "unit": "bytes", **_arrays(self.nodes)}

    def clear(self, title: str, sentence: str) -> None:
        """Say why there is nothing to show."""
        self.nodes = pd.DataFrame()
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
        if not isinstance(content, dict) or content.get("kind") != "choose":
            return
        node, chosen = content.get("node"), None
        if self._peak is not None and node is not None and 0 <= int(node) < len(self.nodes):
            stack = int(self.nodes["stack"].iloc[int(node)])
            if stack >= 0:
                recording = self._peak.log.device.recording
                chosen = Selection("stacks", row=stack, recording=recording)
        self.link.selection = chosen


def _arrays(nodes: pd.DataFrame) -> dict[str, Any]:
    """Columns for the browser, under the names of the icicle; each name once."""
    codes, texts = pd.factorize(nodes["name"])
    return {
        "names": [escaping.visible(text)[:_MAX_NAME] for text in texts],
        "name": codes.tolist(),
        "parent": nodes["parent"].tolist(),
        "kind": nodes["kind"].replace("all", _ROOT).tolist(),
        "own": nodes["own"].tolist(),
        "total": nodes["size_bytes"].tolist(),
        "self": nodes["self_bytes"].tolist(),
        "pruned": nodes["pruned_bytes"].tolist(),
        "threads": [0] * len(nodes),
        "calls": nodes["blocks"].tolist(),
    }
