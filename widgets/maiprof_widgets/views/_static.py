"""The browser's half of the views, put together from ``static/``."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_STATIC = files("maiprof_widgets") / "static"
_IMPORT = re.compile(r'^import\s[^;]*?from\s+"\./([\w-]+\.js)";\n', re.MULTILINE)


@cache
def module(name: str) -> str:
    """One ES module with the modules of ``static/`` that it imports put in front.

    anywidget hands a module to the browser as text without an address, so that relative
    imports cannot work there.
    """
    text = (_STATIC / name).read_text(encoding="utf-8")
    imported = dict.fromkeys(_IMPORT.findall(text))
    return "\n".join([*(module(other) for other in imported), _IMPORT.sub("", text)])


@cache
def styles(*names: str) -> str:
    """Style sheets of ``static/``, joined."""
    return "\n".join((_STATIC / name).read_text(encoding="utf-8") for name in names)
