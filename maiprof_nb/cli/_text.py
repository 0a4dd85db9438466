"""Text for a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """Names from files must not steer the terminal."""
    kept = "\n\N{NARROW NO-BREAK SPACE}"
    return "".join(c if c.isprintable() or c in kept else "\N{REPLACEMENT CHARACTER}" for c in text)
