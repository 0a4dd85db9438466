"""The browser's half of the views, put together from ``static/``."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_STATIC = files("maiprof_widgets") / "static"
_IMPORT = re.compile(r'^import\s[^;]*?from\s+"\./([\w-]+\.js)";\n', re.MULTILINE)


@cache
def module(name: str) -> str:
    """One ES module with the modules of ``static/`` that it imports put in front, each once.

    anywidget hands a module to the browser as text without an address, so that relative
    imports cannot work there. Their top-level names therefore share one scope.
    """
    texts: dict[str, str] = {}
    _collect(name, texts)
    return "\n".join(texts.values())


def _collect(name: str, texts: dict[str, str]) -> None:
    text = (_STATIC / name).read_text(encoding="utf-8")
    for other in _IMPORT.findall(text):
        if other not in texts:
            _collect(other, texts)
    texts[name] = _IMPORT.sub("", text)


@cache
def styles(*names: str) -> str:
    """Style sheets of ``static/``, joined."""
    return "\n".join((_STATIC / name).read_text(encoding="utf-8") for name in names)
