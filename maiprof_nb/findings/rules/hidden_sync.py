"""The host waits for the device in places that do not look like it."""

from __future__ import annotations

from typing import Any

import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.gap_causes import gap_causes
from maiprof_nb.analysis.steps import figure_window, steps
from maiprof_nb.analysis.synchronisations import synchronisations
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule, severity_of
from maiprof_nb.findings.rules._worst import event_rows, worst_device
from maiprof_nb.session import Session

WORTH_SHARE = 0.01  # of the window: one line of code costs it


def ask(session: Session) -> Answer:
    """Idle time after waits for the device (`.item()`, blocking copies, nonzero), with the line.

    The wait itself costs the device nothing; what costs is that nothing is queued when it
    ends. The cost is the part of gaps that began in such a wait, up to the next launch, without
    data loading and Python in it.
    """
    waits = synchronisations(session)
    found = worst_device(gap_causes(session), "synchronisation_ns")
    if session.table("launches").empty:
        return NotApplicable(
            "No calls of the CUDA or HIP runtime were recorded. Record with ProfilerActivity.CUDA."
        )
    if waits.empty:
        return Passed("The host never waits for the device.")
    window = figure_window(session).window
    cost = int(found["synchronisation_ns"].sum())
    share = cost / max(window.dur_ns, 1)
    mine = waits if found.empty else waits[waits["recording"] == found["recording"].iloc[0]]
    waited = int(mine["dur_ns"].sum())
    figure = (
        f"The host waits for the device {_often(session, mine)}, {units.duration(waited)} in all, "
        f"and the GPU is idle {units.duration(cost)} ({units.percent(share)}) after it"
    )
    if share < WORTH_SHARE or mine.empty:
        return Passed(f"{figure}.")
    evidence = _call_sites(mine)
    first = evidence[0]
    place = str(first["operator"] or first["call"])
    if first["line"]:
        of = "the backward of " if first["line_of"] == "forward" else ""
        place += f" at {of}{first['line']}"
    return Found(
        title=f"{figure}; most often in {place}",
        severity=severity_of(share),
        cost_ns=cost,
        evidence=[*evidence, *event_rows(mine, "launches", 5, call="call", line="line")],
    )


def _often(session: Session, waits: pd.DataFrame) -> str:
    marks = steps(session)
    count = marks[marks["recording"].isin(waits["recording"])]["step"].nunique()
    if not count:
        return "once" if len(waits) == 1 else f"{units.count(len(waits))} times"
    return "once a step" if len(waits) == count else f"{len(waits) / count:.3g} times a step"


def _call_sites(waits: pd.DataFrame) -> list[dict[str, Any]]:
    """Waits by operator and line, most frequent first."""
    site = ["recording", "call", "operator", "line", "line_of"]
    by = waits.groupby(site, dropna=False, sort=False)
    sites = by.agg(
        waits=("dur_ns", "size"), waited_ns=("dur_ns", "sum"), event=("event", "first")
    ).reset_index()
    sites = sites.sort_values(["waits", "waited_ns"], ascending=False).head(5)
    return [
        {
            "table": "launches",
            "recording": int(site["recording"]),
            "event": int(site["event"]),
            "call": site["call"],
            "operator": None if pd.isna(site["operator"]) else site["operator"],
            "line": None if pd.isna(site["line"]) else site["line"],
            "line_of": None if pd.isna(site["line_of"]) else site["line_of"],
            "waits": int(site["waits"]),
            "waited_ns": int(site["waited_ns"]),
        }
        for site in sites.to_dict("records")
    ]


RULE = Rule(
    id="hidden-sync",
    question="Does the host wait for the device in hidden places?",
    figures=("gaps", "operator-times"),
    view="gaps",
    advice="Read the loss only every so many steps and keep it on the device until then "
    "(loss.detach() instead of loss.item()); copy from pinned memory with non_blocking=True; "
    "avoid if-statements on tensors, nonzero and boolean indexing in the loop.",
    change="1 line a place",
    ask=ask,
)
