"""The device waits for input."""

from __future__ import annotations

from maiprof_nb import units
from maiprof_nb.analysis.gap_causes import gap_causes
from maiprof_nb.analysis.phases import phases
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.findings._wording import times
from maiprof_nb.findings.rule import Answer, Found, Passed, Rule, severity_of
from maiprof_nb.findings.rules._worst import gap_rows, worst_device
from maiprof_nb.session import Session

WORTH_SHARE = 0.05  # of the window; the limit of the removed TensorBoard plugin, too


def ask(session: Session) -> Answer:
    """Time in gaps in which the launching thread waited in data loading."""
    found = worst_device(gap_causes(session), "input_ns")
    window = figure_window(session).window
    spent = int(found["input_ns"].sum())
    share = spent / max(window.dur_ns, 1)
    loading = phases(session).set_index("phase")["host_share"]["data loading"]
    loop = f"the loop's own threads load data for {units.percent(loading)} of it"
    if share < WORTH_SHARE:
        return Passed(f"The device waits for input {units.percent(share)} of the time; {loop}.")
    return Found(
        title=f"The device waits for input {units.percent(share)} of the time, "
        f"{units.duration(spent)} in {times(int((found['input_ns'] > 0).sum()), 'gap')}; {loop}",
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
