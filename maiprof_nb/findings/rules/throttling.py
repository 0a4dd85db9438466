"""The device slows its clock down: heat, power, or the supply."""

from __future__ import annotations

from maiprof_nb import units
from maiprof_nb.analysis.clock_limits import clock_limits
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule, severity_of
from maiprof_nb.session import Session

WORTH_SHARE = 0.05  # of the samples: a single one is the switch between two loads


def ask(session: Session) -> Answer:
    """Share of samples in which something held the clock down, and how far it fell."""
    found = clock_limits(session)
    if found.empty:
        return NotApplicable(
            "Neither clocks nor the reasons that limit them were sampled. Query "
            "clocks_event_reasons.active, clocks.sm, temperature.gpu and power.draw beside the job."
        )
    worst = found.iloc[0]
    share = float(worst["share"])
    if share < WORTH_SHARE:
        return Passed(f"The clock was held down in {units.percent(share)} of the samples.")
    lost = float(worst["clock_loss"])
    fell = "" if lost != lost else f"; the clock was {units.percent(lost)} below its highest"  # noqa: PLR0124
    window = figure_window(session).window.dur_ns
    return Found(
        title=f"{worst['reason']} held the clock of GPU {worst['device']} down in "
        f"{units.percent(share)} of the samples{fell}",
        severity="medium" if not fell else severity_of(share * lost),
        cost_ns=int(share * lost * window) if fell else None,
        evidence=[
            {
                "table": "counters",
                "recording": int(row.recording),
                "device": str(row.device),
                "reason": str(row.reason),
                "samples": int(row.samples),
                "share": float(row.share),
                "clock_loss": None if row.clock_loss != row.clock_loss else float(row.clock_loss),
            }
            for row in found.itertuples()
        ],
    )


RULE = Rule(
    id="throttling",
    question="Is the device's clock held down by heat or power?",
    figures=("metrics",),
    view="metrics",
    advice="Look at cooling and at the power limit (nvidia-smi -q -d PERFORMANCE,POWER). A power "
    "cap under full load is normal for some cards; heat and the supply's brake are not.",
    change="none in the code",
    ask=ask,
)
