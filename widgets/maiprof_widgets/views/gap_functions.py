"""Host functions by their time inside the device's gaps."""

from __future__ import annotations

import ipywidgets
import pandas as pd

from maiprof_nb.analysis.python_in_gaps import frames_from_stacks, functions_in_gaps
from maiprof_nb.session import Session
from maiprof_widgets import escaping
from maiprof_widgets.views.status import StatusLine
from maiprof_widgets.views.table import paged_table

MAX_ROWS = 2000
FROM_STACKS = (
    "This trace keeps stacks with its operators, not Python calls: a function has the time of "
    "the operators it led to, so that its time is a lower bound and its calls are operators."
)


class GapFunctionsView(ipywidgets.VBox):
    """A table of `maiprof_nb.analysis.functions_in_gaps`, with what its frames come from."""

    def __init__(self, session: Session) -> None:
        status = StatusLine()
        shown: list[ipywidgets.Widget] = []
        with status.guard():
            found = functions_in_gaps(session)
            shown = [paged_table(_shown(found), text_columns=2)] if len(found) else []
            if frames_from_stacks(session):
                shown.append(ipywidgets.HTML(f'<div class="maiprof-sub">{FROM_STACKS}</div>'))
        super().__init__([*shown, status])


def _shown(found: pd.DataFrame) -> pd.DataFrame:
    top = found.head(MAX_ROWS)
    return pd.DataFrame(
        {
            "Function": [escaping.visible(name) for name in top["name"]],
            "Kind": top["kind"],
            "Threads": top["threads"],
            "Calls in gaps": top["calls"],
            "Own time (ms)": (top["self_in_gaps_ns"] / 1e6).round(3),
            "With callees (ms)": (top["total_in_gaps_ns"] / 1e6).round(3),
            "Own / idle time (%)": (top["idle_share"] * 100).round(1),
        }
    )
