"""``maiprof diagnose PATH...``: what is wrong with a job, for people, scripts and CI."""

from __future__ import annotations

import argparse
import json
from typing import Any

from maiprof_nb import load, units
from maiprof_nb.cli import _progress
from maiprof_nb.cli._text import printable
from maiprof_nb.errors import MaiprofError
from maiprof_nb.findings.diagnosis import as_json, diagnose
from maiprof_nb.findings.finding import FOUND
from maiprof_nb.findings.rules import RULES

FOUND_EXIT = 1


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser("diagnose", help="say why a job is slow or out of memory")
    parser.add_argument("paths", nargs="+", metavar="PATH", help="file, folder or URL")
    parser.add_argument("--json", action="store_true", help="one JSON object a PATH, in order")
    parser.add_argument(
        "--fail-on",
        action="append",
        default=[],
        metavar="RULE",
        choices=["any", *(rule.id for rule in RULES)],
        help="exit with 1 if this rule (or any) finds something; may be repeated",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the findings of each path; 2 if one cannot be read, 1 if a rule of --fail-on found."""
    failed = wanted = False
    for path in options.paths:
        said = _diagnosis(path)
        failed = failed or "error" in said
        found = {f["rule"] for f in said.get("findings", ()) if f["outcome"] == FOUND}
        wanted = wanted or bool(
            found & set(options.fail_on) or (found and "any" in options.fail_on)
        )
        print(json.dumps(said) if options.json else _in_words(said))
    return 2 if failed else FOUND_EXIT if wanted else 0


def _diagnosis(path: str) -> dict[str, Any]:
    try:
        with _progress.shown(path) as report:
            session = load(path, report=report)
    except MaiprofError as problem:
        return {"source": path, "findings": [], "error": problem.sentence}
    return {"source": path, "findings": [as_json(finding) for finding in diagnose(session)]}


def _in_words(said: dict[str, Any]) -> str:
    if "error" in said:
        return printable(f"{said['source']}\n  cannot be read: {said['error']}")
    lines = [said["source"]]
    footnotes: dict[str, int] = {}
    for finding in said["findings"]:
        lines += _finding(finding, footnotes)
    lines += [f"  [{number}] {reason}" for reason, number in footnotes.items()]
    return printable("\n".join(lines))


def _finding(finding: dict[str, Any], footnotes: dict[str, int]) -> list[str]:
    """Lines of one finding; what speaks against it is said once, at the end of all."""
    head = f"  {finding['outcome']:<15}{finding['rule']:<26}"
    if finding["outcome"] != FOUND:
        return [f"{head}{finding['reason'] or finding['title']}"]
    cost = ""
    if finding["cost_ns"] is not None:
        share = units.percent(finding["share"] or 0)
        cost = f" [{finding['severity']}, {units.duration(finding['cost_ns'])}, {share}]"
    lines = [f"{head}{finding['title']}{cost}"]
    lines.append(f"{'':<17}try ({finding['change']}): {finding['advice']}")
    lines += [f"{'':<17}{gain}" for gain in _gain(finding["gain"])]
    state, reasons = finding["trust"]["state"], finding["trust"]["reasons"]
    if reasons:
        marks = " ".join(f"[{footnotes.setdefault(r, len(footnotes) + 1)}]" for r in reasons)
        lines.append(f"{'':<17}trust: {state} {marks}")
    return lines


def _gain(gain: dict[str, Any] | None) -> list[str]:
    """What the edit would save, in words."""
    if gain is None:
        return []
    if "reason" in gain:
        return [f"gain not answerable: {gain['reason']}"]
    least, expected, most = (
        units.percent(gain[f"{bound}_share"]) for bound in ("floor", "expected", "ceiling")
    )
    if gain["ceiling_ns"] <= 0:
        said = "would save nothing, by replaying this recording without the cost"
    elif gain["expected_ns"] <= 0:  # e.g. casts launched by a host that is the limit already
        said = f"would save nothing that is to be expected, {most} at most ({least} at least)"
    else:
        time = units.duration(gain["expected_ns"])
        said = f"would save {least} to {most}, {expected} expected ({time} a {gain['per']})"
    return [
        said,
        *(f"  taken for granted: {reason}" for reason in gain["reasons"]),
    ]
