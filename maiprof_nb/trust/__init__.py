"""What can be believed: small rules about recordings, and what they mean for each figure."""

from __future__ import annotations

from maiprof_nb.trust.figures import FIGURES
from maiprof_nb.trust.gate import RULES, Trust, checks, trust

__all__ = ["FIGURES", "RULES", "Trust", "checks", "trust"]
