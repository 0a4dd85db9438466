"""Copies from and to host memory that is not pinned."""

from __future__ import annotations

import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.copies import host_copies
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule, severity_of
from maiprof_nb.session import Session

WORTH_SHARE = 0.01  # of the window


def ask(session: Session) -> Answer:
    """Time, bytes and bandwidth of pageable copies beside those of pinned ones."""
    table = host_copies(session)
    if table.empty:
        return NotApplicable("No copy between host and device was recorded.")
    if (table["memory"] == "unsaid").all():
        return NotApplicable("The names of the copies do not say whether memory was pinned (ROCm).")
    pageable = table[table["memory"] == "pageable"]
    spent = int(pageable["total_ns"].sum())
    window = max(figure_window(session).window.dur_ns, 1)
    share = spent / window
    if share < WORTH_SHARE:
        return Passed(f"Copies of pageable memory take {units.percent(share)} of the time.")
    size = pageable["size_bytes"].sum(min_count=1)
    main = pageable.sort_values("total_ns").iloc[-1]
    pinned = table[(table["memory"] == "pinned") & (table["direction"] == main["direction"])]
    return Found(
        title=f"{units.count(pageable['calls'].sum())} copies of pageable memory take "
        f"{units.duration(spent)} ({units.percent(share)}){_rates(size, main, pinned)}",
        severity=severity_of(share),
        cost_ns=spent,
        size_bytes=None if pd.isna(size) else int(size),
        evidence=[
            {
                "table": "host_copies",
                "direction": str(row.direction),
                "memory": str(row.memory),
                "calls": int(row.calls),
                "total_ns": int(row.total_ns),
                "size_bytes": None if pd.isna(row.size_bytes) else int(row.size_bytes),
                "gbs": None if pd.isna(row.gbs) else float(row.gbs),
            }
            for row in table.itertuples()
        ],
    )


def _rates(size: object, main: pd.Series, pinned: pd.DataFrame) -> str:
    """How much moved and how fast; beside it what pinned copies of the recording reach."""
    if pd.isna(size) or pd.isna(main["gbs"]):
        return ""
    said = f": {units.size(float(size))} at {main['gbs']:.1f} GB/s"  # type: ignore[arg-type]
    if pinned.empty or pd.isna(pinned["gbs"].iloc[0]):
        return f"{said}; no pinned copy to compare with"
    return f"{said}, pinned ones reach {pinned['gbs'].iloc[0]:.1f} GB/s"


RULE = Rule(
    id="pageable-copies",
    question="Are copies between host and device made from pageable memory?",
    figures=("breakdown",),
    view="ranking",
    advice="Give the DataLoader pin_memory=True (or call pin_memory() on the batch), and copy with "
    "non_blocking=True: pinned copies are faster and run beside the host and the kernels.",
    change="2 lines",
    ask=ask,
)
