"""The device waits for a reload every so many steps."""

from __future__ import annotations

import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.gap_causes import gap_causes
from maiprof_nb.analysis.recurring_gaps import recurring_input
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.findings._wording import every, times
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule, severity_of
from maiprof_nb.findings.rules._worst import gap_rows
from maiprof_nb.session import Session


def ask(session: Session) -> Answer:
    """Whether waits for input far above the median step's come back at one distance.

    Far is five times the scatter and a fifth of a step above the median; two such waits at
    least, at one distance, and none missing where the distance predicts one. The cost is what
    they last over the median step's wait, so it is no part of what slow loading costs in every
    step.
    """
    found = recurring_input(session)
    if found.empty:
        if gap_causes(session)["input_ns"].sum() == 0:
            return NotApplicable(
                "No gap was spent in loading data. A loader of your own is seen with "
                "with_stack=True."
            )
        return Passed("No step waits for input much longer than the others.")
    regular = found[found["every_steps"].notna()]
    if regular.empty:
        row = found.iloc[0]
        return Passed(
            f"{times(len(row['long_steps']), 'step')} waited for input about "
            f"{units.duration(row['typical_ns'])}, but at no regular distance that this recording "
            "could show."
        )
    row = regular.iloc[0]
    cost = int(row["excess_ns"])
    numbers = ", ".join(str(number) for number in row["long_steps"][:5])
    share = cost / max(figure_window(session).window.dur_ns, 1)
    return Found(
        title=f"The GPU waits {units.duration(row['typical_ns'])} for input "
        f"{every(row)}: steps {numbers}" + ("" if len(row["long_steps"]) <= 5 else ", ..."),
        severity=severity_of(share),
        cost_ns=cost,
        evidence=_evidence(session, row),
    )


def _evidence(session: Session, row: pd.Series) -> list[dict[str, object]]:
    found = gap_causes(session)
    device = row["device"]
    same = found["device"].isna() if pd.isna(device) else found["device"] == device
    mine = found[(found["recording"] == row["recording"]) & same]
    steps = {
        "table": "steps",
        "recording": int(row["recording"]),
        "steps": list(row["long_steps"]),
        "every_steps": int(row["every_steps"]),
        "usual_ns": int(row["usual_ns"]),
    }
    return [steps, *gap_rows(mine, "input_ns", len(row["long_steps"]))]


RULE = Rule(
    id="periodic-reload",
    question="Does the device wait for a reload every so many steps?",
    figures=("gaps", "steps"),
    view="gaps",
    advice="Read the next part of the data in another thread or process while the current one is "
    "worked through, and swap when it is there.",
    change="about 10 lines",
    ask=ask,
)
