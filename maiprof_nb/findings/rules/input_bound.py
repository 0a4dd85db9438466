"""The device waits for input."""

from __future__ import annotations

from maiprof_nb import units
from maiprof_nb.analysis.gap_causes import gap_causes
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.findings.rule import Answer, Found, Passed, Rule, severity_of
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
    longest = found[found["input_ns"] > 0].nlargest(10, "input_ns")
    return Found(
        title=f"The device waits for input {units.percent(share)} of the time, "
        f"{units.duration(spent)} in {units.count((found['input_ns'] > 0).sum())} gaps",
        severity=severity_of(share),
        cost_ns=spent,
        evidence=[
            {
                "table": "gaps",
                "recording": int(row.recording),
                "ts_ns": int(row.ts_ns),
                "dur_ns": int(row.dur_ns),
                "input_ns": int(row.input_ns),
                "line": row.user_line if row.user_line is not None else row.line,
            }
            for row in longest.itertuples()
        ],
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
