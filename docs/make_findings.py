"""Writes docs/findings.md from the rules: ``python docs/make_findings.py``."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import tomllib
from pathlib import Path
from types import ModuleType

from maiprof_nb.findings.rule import Rule
from maiprof_nb.findings.rules import RULES

TARGET = Path(__file__).with_name("findings.md")
HEAD = """# Findings

`maiprof_nb.findings.diagnosis.diagnose(session)` and `maiprof diagnose PATH...` ask every rule below;
each ends as *found*, *passed*, *not applicable* (the recording does not hold what the rule needs) or
*failed* (the rule broke; the others go on). A cost is time over the window of the figures, of the
device or rank that has it worst. Two findings may see the same time from two sides, so costs of
different findings never add up. Generated from the rules by `docs/make_findings.py`.
"""
SHOWN_BY = TARGET.with_name("shown_by.toml")
_KINDS = {
    "sample": "sample `{}`",
    "simulated": "simulated: {}",
    "live": "a loop recorded live",
}
_LEGEND = (
    "*Shown by*, *passed by*: a recording for which the rule is found, and a healthy one for which it "
    "passes. Samples lie in `sample_traces`; *simulated* are other settings of the same job "
    "(`tests/simulated_jobs.py`), whose true cost is known; names are those of public files "
    "([corpus.md](corpus.md)). A test asks them all."
)


def text() -> str:
    """The whole page."""
    return "\n".join([HEAD, _overview(), *(_section(rule) for rule in RULES)])


def _overview() -> str:
    head = [
        "| rule | question | size of the edit | shown by | passed by |",
        "|---|---|---|---|---|",
    ]
    return "\n".join([*head, *map(_row, RULES), "", _LEGEND, ""])


def _row(rule: Rule) -> str:
    of = tomllib.loads(SHOWN_BY.read_text(encoding="utf-8"))[rule.id]
    shown, passed = _recording(of["shown"]), _recording(of["passed"])
    return f"| [{rule.id}](#{rule.id}) | {rule.question} | {rule.change} | {shown} | {passed} |"


def _recording(name: str) -> str:
    """Where a recording comes from, for people."""
    kind, _, rest = name.partition(":")
    if kind == "public":
        return f"`{rest.partition('/')[2].rstrip('*')}`"
    return _KINDS[kind].format(rest)


def _section(rule: Rule) -> str:
    figures = ", ".join(f"`{name}`" for name in rule.figures)
    return "\n".join(
        [
            f"## {rule.id}",
            "",
            rule.question,
            "",
            inspect.getdoc(rule.ask) or "",
            "",
            *_settings(rule),
            f"Try ({rule.change}): {rule.advice}",
            "",
            f"Rests on {figures}; shown by the view `{rule.view}`.",
            "",
        ]
    )


def _settings(rule: Rule) -> list[str]:
    """Thresholds with the reason that stands beside them in the source."""
    module = importlib.import_module(rule.ask.__module__)
    found = _defined(module) | _imported(module)
    if not found:
        return []
    rows = [f"| `{name}` | {value} | {why} |" for name, (value, why) in sorted(found.items())]
    return ["| threshold | value | of what, and why |", "|---|---|---|", *rows, ""]


def _defined(module: ModuleType) -> dict[str, tuple[str, str]]:
    """Public numbers a module sets, with the comment behind them."""
    found: dict[str, tuple[str, str]] = {}
    for line in inspect.getsource(module).splitlines():
        match = re.match(r"([A-Z][A-Z_]*(?:, [A-Z][A-Z_]*)*) = ([\d_., ]+?)(?:\s+# (.*))?$", line)
        if match:
            values = [value.strip().replace("_", " ") for value in match[2].split(",")]
            for name, value in zip(match[1].split(", "), values, strict=True):
                found[name] = (value, match[3] or "")
    return found


def _imported(module: ModuleType) -> dict[str, tuple[str, str]]:
    """Those it takes from analyses."""
    found: dict[str, tuple[str, str]] = {}
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("maiprof_nb.analysis"):
            there = _defined(importlib.import_module(str(node.module)))
            found |= {name.name: there[name.name] for name in node.names if name.name in there}
    return found


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
