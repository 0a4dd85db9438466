"""The device waits for input."""

from __future__ import annotations

from maiprof_nb import units
from maiprof_nb.analysis.gap_causes import gap_causes
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.findings.rule import Answer, Found, Passed, Rule, severity_of
from maiprof_nb.findings.rules._worst import gap_rows
from maiprof_nb.session import Session

WORTH_SHARE = 0.05  # of the window; the limit of the removed TensorBoard plugin, too


def ask(session: Session) -> Answer:
    """Time in gaps in which the launching thread waited in data loading."""
    found = gap_causes(session)
    window = figure_window(session).window
    worst = found.groupby(["recording", "device"], dropna=False)["input_ns"].sum().max()
    spent = 0 if found.empty else int(worst)
    share = spent / max(window.dur_ns, 1)
    if share < WORTH_SHARE:
        return Passed(f"The device waits for input {units.percent(share)} of the time.")
    return Found(
        title=f"The device waits for input {units.percent(share)} of the time, "
        f"{units.duration(spent)} in {units.count((found['input_ns'] > 0).sum())} gaps",
        severity=severity_of(share),
        cost_ns=spent,
        evidence=gap_rows(found, "input_ns"),
    )


RULE = Rule(
    id="input-bound",
    question="Does the device wait for input?",
    figures=("gaps", "phases"),
    view="gaps",
    advice="Give data loading more workers (num_workers of the DataLoader, num_worker_threads of "
    "your own loader) up to the host's cores, let it prefetch, and keep decoding off the "
    "training thread.",
    change="1 line",
    ask=ask,
)
