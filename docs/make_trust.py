"""Writes docs/trust.md from the rules: ``python docs/make_trust.py``."""

from __future__ import annotations

from pathlib import Path

from maiprof_nb.trust import FIGURES, RULES
from maiprof_nb.trust.rule import Rule

TARGET = Path(__file__).with_name("trust.md")
HEAD = """# What can be trusted

Every recording is checked by the rules below; `maiprof_nb.trust.checks(session)` gives one row a rule
and recording, and `trust(session, "gaps")` says whether a figure is *ok*, *reduced* or *not
answerable*, and why. A figure is not answerable if what it needs was not recorded, or if a rule that
prevents it fails for every recording the rule applies to. Rules look at whole recordings, whatever
time is selected. Generated from the rules by `docs/make_trust.py`.
"""
_OF = {
    "trace": "each trace",
    "snapshot": "each memory snapshot",
    "metrics": "each metrics log",
    "recording": "each recording",
    "session": "the session",
}


def text() -> str:
    """The whole page."""
    return "\n".join([HEAD, _figures(), "# Rules\n", *(_section(rule) for rule in RULES)])


def _figures() -> str:
    rows = [
        f"| `{name}` | {figure.meaning} | {_rules_of(name)} |" for name, figure in FIGURES.items()
    ]
    return "\n".join(
        ["| figure | what it is | rules that speak about it |", "|---|---|---|", *rows, ""]
    )


def _rules_of(figure: str) -> str:
    everywhere = {rule.id for rule in RULES if len(rule.affects) >= len(FIGURES) - 1}
    names = [r.id for r in RULES if figure in r.affects and r.id not in everywhere]
    return ", ".join(f"[{name}](#{name})" for name in names) or "-"


def _section(rule: Rule) -> str:
    said = [
        ("Prevents", rule.prevents),
        ("Reduces", rule.reduces),
        ("Is said beside", rule.says),
    ]
    lines = [f"{what}: {_names(figures)}." for what, figures in said if figures]
    return "\n".join(
        [
            f"## {rule.id}",
            "",
            f"{rule.title[0].upper()}{rule.title[1:]}. Checked for {_OF[rule.of]}.",
            "",
            rule.meaning,
            "",
            *lines,
            "",
            f"What to do: {rule.remedy}.",
            "",
        ]
    )


def _names(figures: tuple[str, ...]) -> str:
    if len(figures) >= len(FIGURES) - 1:
        rest = [name for name in FIGURES if name not in figures]
        return f"every figure except {rest[0]}" if rest else "every figure"
    return ", ".join(f"`{name}`" for name in figures)


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
