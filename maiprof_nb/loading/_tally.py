"""Counts what was repaired or lost while reading, with the first example of each kind."""

from __future__ import annotations

from dataclasses import dataclass, field

from maiprof_nb.recording import Note


@dataclass
class Tally:
    """Notes in the making."""

    counts: dict[str, int] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    def add(self, code: str, text: str, count: int = 1) -> None:
        """Count something; the text of the first time is kept."""
        if count:
            self.counts[code] = self.counts.get(code, 0) + count
            self.texts.setdefault(code, text)

    def notes(self) -> list[Note]:
        """One note a kind."""
        return [Note(code, self.texts[code], count) for code, count in self.counts.items()]
