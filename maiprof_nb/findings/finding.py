"""A finding: what one rule says of one session."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

FOUND, PASSED, NOT_APPLICABLE, FAILED = "found", "passed", "not-applicable", "failed"
SEVERITIES = ("high", "medium", "low")


@dataclass(frozen=True)
class Finding:
    """The outcome of a rule.

    Parameters
    ----------
    rule : str
        Id of the rule, e.g. ``input-bound``.
    outcome : str
        ``found``, ``passed``, ``not-applicable`` (the recording does not hold what the rule
        needs; `reason` says what would) or ``failed`` (the rule itself broke; `reason` says how).
    title : str
        One sentence with the number in it.
    severity : str or None
        ``high``, ``medium`` or ``low`` where something was found.
    cost_ns : int or None
        Time it costs over the window of the figures, in ns.
    cost_ns_per_step : int or None
        The same a step, where steps were recorded.
    share : float or None
        Of the window (0 to 1).
    size_bytes : int or None
        Bytes it is about, for findings on memory.
    scope : dict
        ``ranks``, ``steps`` (count) and ``window_ns`` ([start, end]) it was looked for in.
    evidence : tuple of dict
        The rows behind the number, most telling first; each has ``table`` and, where it is a
        row of a table, ``recording`` and ``event``.
    advice : str
        The edit to try.
    change : str
        Size of that edit, e.g. ``1 line``.
    view : str
        The view that shows it: ``utilisation``, ``gaps``, ``metrics``, ``phases``, ``ranking``,
        ``memory``.
    trust : str
        ``ok``, ``reduced`` or ``not answerable``.
    reasons : tuple of str
        Why the figure may be off.
    reason : str
        Why the rule does not apply, or how it failed.
    gain : dict or None
        What the edit would save, by replaying the schedule without the cost: ``floor_ns``,
        ``expected_ns``, ``ceiling_ns`` (``per`` step or window), the same as shares of the
        window, and ``reasons``; or only ``reason``, why that cannot be said. None where the
        rule names no change that can be projected. Gains of findings do not add up.
    """

    rule: str
    outcome: str
    title: str
    severity: str | None = None
    cost_ns: int | None = None
    cost_ns_per_step: int | None = None
    share: float | None = None
    size_bytes: int | None = None
    scope: dict[str, Any] = field(default_factory=dict)
    evidence: tuple[dict[str, Any], ...] = ()
    advice: str = ""
    change: str = ""
    view: str = ""
    trust: str = "ok"
    reasons: tuple[str, ...] = ()
    reason: str = ""
    gain: dict[str, Any] | None = None
