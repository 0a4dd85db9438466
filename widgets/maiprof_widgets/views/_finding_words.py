"""What a card of a finding says, as plain text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from maiprof_nb import units
from maiprof_nb.findings.finding import FOUND, NOT_APPLICABLE, PASSED, SEVERITIES, Finding
from maiprof_nb.session import Session
from maiprof_nb.tables import SCHEMAS
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets import escaping

_MAX_EVIDENCE = 20
_MAX_TEXT = 200
_HIDDEN = {"table", "recording", "event", "ts_ns"}
_VIEWS = {
    "utilisation": "CPU and GPU utilisation",
    "gaps": "the gaps and the icicle of step 2",
    "metrics": "GPU metrics",
    "phases": "the training loop by phase",
    "ranking": "the rankings",
    "memory": "active memory",
}
_MARGIN = 0.25  # of a gap's length, shown on either side of it


def headline(findings: list[Finding], waiting: int = 0) -> str:
    """How many things were found, by severity, as a sentence."""
    found = [one for one in findings if one.outcome == FOUND]
    if not found:
        return "" if waiting else "Nothing was found that costs time or memory."
    counted = [
        f"{number} {severity}"
        for severity in SEVERITIES
        if (number := sum(one.severity == severity for one in found))
    ]
    things = "thing costs" if len(found) == 1 else "things cost"
    return f"{len(found)} {things} time or memory: {', '.join(counted)}."


def aside(findings: list[Finding], waiting: int = 0) -> str:
    """What to know of the list as a whole; that rules are still asked comes first."""
    said = []
    if waiting:
        said.append(
            f"Asking {waiting} more rule{'s' if waiting > 1 else ''}\N{HORIZONTAL ELLIPSIS}"
        )
    elif all(one.outcome == NOT_APPLICABLE for one in findings):
        said.append("No rule applies to this recording; the list says what each would need.")
    if sum(one.outcome == FOUND for one in findings) > 1:
        said.append("Costs and gains may be the same time seen twice: they do not add up.")
    return " ".join(said)


def card(finding: Finding, session: Session) -> dict[str, Any]:
    """Everything the browser shows of one finding."""
    rows = list(finding.evidence)
    return {
        "rule": finding.rule,
        "outcome": finding.outcome,
        "title": _text(finding.title, 400),
        "severity": finding.severity or "",
        "cost": _cost(finding),
        "advice": _text(finding.advice, 600),
        "change": _text(finding.change, 100),
        "gain": _gain(getattr(finding, "gain", None)),
        "trust": _trust(finding),
        "state": finding.trust,
        "reason": _text(finding.reason, 600),
        "look": _VIEWS.get(finding.view, ""),
        "evidence": [_row(row, session) for row in rows[:_MAX_EVIDENCE]],
        "more": max(len(rows) - _MAX_EVIDENCE, 0),
    }


def window_of(row: Mapping[str, Any], session: Session) -> TimeWindow | None:
    """The time round a row of evidence, with some margin; None where it has no place in time."""
    start, length = row.get("ts_ns"), row.get("dur_ns")
    if start is None or length is None:
        return None
    span = session.window
    margin = max(int(length * _MARGIN), 1_000)
    low = min(max(int(start) - margin, span.start_ns), span.end_ns)
    high = max(min(int(start) + int(length) + margin, span.end_ns), low)
    return TimeWindow(low, high) if high > low else None


def selection_of(row: Mapping[str, Any]) -> tuple[str, str, int | None] | None:
    """Table, name and recording a row of evidence selects, or None."""
    table, name = row.get("table"), row.get("name")
    if not isinstance(name, str) or table not in SCHEMAS:
        return None
    recording = row.get("recording")
    return str(table), name, None if recording is None else int(recording)


def _cost(finding: Finding) -> str:
    parts = []
    if finding.cost_ns_per_step is not None:
        parts.append(f"{_signed(finding.cost_ns_per_step)} a step")
    elif finding.cost_ns is not None:
        parts.append(f"{_signed(finding.cost_ns)} in the time looked at")
    if finding.share is not None:
        parts.append(f"{units.percent(finding.share)} of the time")
    if finding.size_bytes is not None:
        parts.append(units.size(finding.size_bytes))
    if not parts:
        return ""
    return ("Costs " if finding.cost_ns is not None else "About ") + ", ".join(parts)


def _gain(gain: Mapping[str, Any] | None) -> str:
    """The bounds of what the fix would bring."""
    if not gain or gain.get("expected_ns") is None:
        return ""
    floor, expected, ceiling = (
        int(gain[f"{name}_ns"]) for name in ("floor", "expected", "ceiling")
    )
    per = f" a {gain['per']}" if gain.get("per") == "step" else ""
    if ceiling <= 0:
        return "none, by replaying this recording without the cost"
    if expected <= 0:
        return f"none expected{per}, at most {_signed(ceiling)}"
    share = gain.get("expected_share")
    of = f" ({units.percent(float(share))})" if share is not None else ""
    return (
        f"{_signed(expected)}{of}{per} expected, at least {_signed(floor)}, "
        f"at most {_signed(ceiling)}"
    )


def _trust(finding: Finding) -> str:
    if finding.outcome not in (FOUND, PASSED):
        return ""
    return " ".join(_text(reason, 400) for reason in finding.reasons)


def _row(row: Mapping[str, Any], session: Session) -> dict[str, Any]:
    cells = [
        [_label(key), _value(key, value)]
        for key, value in row.items()
        if key not in _HIDDEN and not _missing(value)
    ]
    if not _missing(row.get("ts_ns")):
        cells.insert(0, ["at", units.duration(int(row["ts_ns"]))])
    action = "time" if window_of(row, session) else "name" if selection_of(row) else ""
    return {"table": str(row.get("table", "")), "cells": cells, "action": action}


def _label(key: str) -> str:
    for unit in ("_ns", "_bytes", "_share"):
        key = key.removesuffix(unit)
    return {"dur": "lasts"}.get(key, key.replace("_", " "))


def _value(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return _number(key, value)
    if isinstance(value, list | tuple):
        return _text(", ".join(map(str, value)), _MAX_TEXT)
    return _text(value, _MAX_TEXT)


def _number(key: str, value: float) -> str:
    if key.endswith("_ns"):
        return _signed(int(value))
    if key.endswith("_bytes"):
        return units.size(value)
    if key.endswith("_share"):
        return units.percent(float(value))
    return units.count(value) if float(value).is_integer() else f"{value:.4g}"


def _signed(ns: int) -> str:
    return units.duration(ns) if ns >= 0 else f"\N{MINUS SIGN}{units.duration(-ns)}"


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _text(value: Any, longest: int) -> str:
    shown = escaping.visible(value)
    return shown if len(shown) <= longest else shown[: longest - 1] + "\N{HORIZONTAL ELLIPSIS}"
