"""Names of native functions as a person says them."""

from __future__ import annotations

import re

_ARGUMENTS = re.compile(r"(?<=[\w>])\(.*?(?= \([^()]*:\d+\)$|$)")
_CLONE = re.compile(r"\.(?:llvm|lto_priv|constprop|part|isra)\.\d+")
_GENERATED = "torch::autograd::generated::"


def spoken(frame: str) -> str:
    """A frame's name without its C++ arguments and what a compiler put behind it.

    ``torch::autograd::generated::MulBackward0::apply(std::vector<...>&&)`` is
    ``MulBackward0::apply``. A place, `` (file:line)``, stays; a Python frame stays as it is.
    """
    text = _CLONE.sub("", frame)
    if "::" not in text:
        return text
    return _ARGUMENTS.sub("", text, count=1).removeprefix(_GENERATED)
