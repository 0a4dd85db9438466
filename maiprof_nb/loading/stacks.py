"""Distinct stacks of a memory snapshot, numbered as they are met."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import pandas as pd

from maiprof_nb.loading._columns import same_objects
from maiprof_nb.tables import SCHEMAS

MAX_FRAMES = 1_000  # Python's own recursion limit; deeper is damage or attack
MAX_FRAME_TEXT = 2_000  # C++ template names reach a few hundred

_NO_FILE = ("", "none")  # native code; a CPU profile, which has the place in the name
_NATIVE_RANKS = (  # a backward thread has no Python frames: its autograd node says most
    (re.compile(r"torch::autograd::generated::\w+::apply\b"), 2),
    (re.compile(r"at::_ops::(?!empty)"), 3),
    (re.compile(r"torch::(?:unwind|CapturedTraceback|cuda)\b|c10::|at::detail::"), 5),
)
_NATIVE = re.compile(r"^(?:\?\?)?$|\.(?:c|cc|cpp|cxx|cu|cuh|h|hpp|inl|S|o|so(?:\.\d+)*)$")
_LIBRARY = re.compile(
    r"(?:^|[/\\])(?:torch|site-packages|dist-packages|lib[/\\]python3(?:\.\d+)?)[/\\]"
    r"|[/\\]torchinductor_|^<frozen "
)


def _plain(value: Any) -> str:
    """Text of a value; lists are no part of a frame, and can be built to have no end."""
    text = str(value) if isinstance(value, str | int | float) else "?"
    return text.encode("utf-8", "replace").decode()  # a path that was no UTF-8 has half characters


def _frame_text(frame: Mapping[str, Any]) -> str:
    name, file = _plain(frame.get("name")), _plain(frame.get("filename", ""))
    text = name if file in _NO_FILE else f"{name} ({file}:{_plain(frame.get('line', 0))})"
    return " ".join(text[:MAX_FRAME_TEXT].splitlines())


def _frame_owner(frame: Mapping[str, Any]) -> int:
    """0 = the user's own code, 1 = a Python library, more = native code."""
    file = _plain(frame.get("filename", ""))
    if _NATIVE.search(file):
        name = _plain(frame.get("name", ""))
        return next((rank for pattern, rank in _NATIVE_RANKS if pattern.match(name)), 4)
    return int(bool(_LIBRARY.search(file)))


class StackIds:
    """Gives each distinct stack a row id; the same frames get the same id.

    Frames and stacks are told apart by their place in memory first, since a snapshot shares
    one object among many events; the snapshot must stay alive while this is used.
    """

    def __init__(self) -> None:
        self._frame_ids: dict[int, int] = {}
        self._frames: dict[str, int] = {}
        self._owners: list[int] = []
        self._by_object: dict[int, int | None] = {}
        self._stacks: dict[tuple[int, ...], int] = {}

    def of(self, frames: Any) -> int | None:
        """Row id of a list of frames; None where nothing was recorded."""
        if not isinstance(frames, list) or not frames:
            return None
        known = self._by_object.get(id(frames), -1)
        if known != -1:
            return known
        shown = frames[:MAX_FRAMES]
        met = tuple(map(self._frame_ids.get, map(id, shown)))  # no Python call a frame
        if None in met:
            key = tuple(self._frame(frame) for frame in shown if isinstance(frame, dict))
        else:
            key = cast("tuple[int, ...]", met)
        found = self._stacks.setdefault(key, len(self._stacks)) if key else None
        self._by_object[id(frames)] = found
        return found

    def of_each(self, values: Sequence[Any]) -> pd.arrays.IntegerArray:
        """Row ids of many lists of frames, each distinct object looked at once."""
        codes, distinct = same_objects(values)
        found = [self.of(frames) for frames in distinct]
        number = np.array([-1 if one is None else one for one in found], dtype=np.int64)[codes]
        return pd.arrays.IntegerArray(number, number < 0)

    def _frame(self, frame: dict[str, Any]) -> int:
        found = self._frame_ids.get(id(frame))
        if found is None:
            text = _frame_text(frame)
            found = self._frames.setdefault(text, len(self._frames))
            if found == len(self._owners):
                self._owners.append(_frame_owner(frame))
            self._frame_ids[id(frame)] = found
        return found

    def table(self) -> pd.DataFrame:
        """The table `stacks`."""
        texts = list(self._frames)
        return SCHEMAS["stacks"].frame(
            {
                "stack": range(len(self._stacks)),
                "label": [texts[self._label(key)] for key in self._stacks],
                "frames": ["\n".join(texts[frame] for frame in key) for key in self._stacks],
            }
        )

    def _label(self, key: tuple[int, ...]) -> int:
        """Innermost frame of the user's own, else of Python, else the native one that says most."""
        return min(key, key=self._owners.__getitem__)
