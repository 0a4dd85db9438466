"""JSON objects of a list or of lines, read one by one up to where the text is damaged."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_BETWEEN = re.compile(r"[\s,]*")


def objects_of_list(text: str, start: int) -> tuple[list[dict[str, Any]], bool]:
    """Objects of the list whose bracket stands at `start`, and whether the list was whole."""
    decoder = json.JSONDecoder()
    found: list[dict[str, Any]] = []
    at = start + 1
    while True:
        at = _end_of_blank(text, at)
        if text[at : at + 1] == "]":
            return found, True
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return found, False
        if isinstance(value, dict):
            found.append(value)


def objects_of_lines(text: str) -> Iterator[tuple[int, str, dict[str, Any] | None]]:
    """Numbered lines that are not blank, each with its object or None."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        yield number, line, value if isinstance(value, dict) else None


def number_of(value: object) -> float:
    """A JSON value as a number; not a number where it is none (true and false included)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return float("nan")
    try:
        return float(value)
    except OverflowError:  # an integer beyond any float
        return float("nan")


def _end_of_blank(text: str, at: int) -> int:
    found = _BETWEEN.match(text, at)
    return found.end() if found else at
