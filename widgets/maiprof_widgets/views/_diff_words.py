"""What the view of two moments says in words, and the columns of its table."""

from __future__ import annotations

import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.memory_diff import Moment
from maiprof_nb.timebase import NS_PER_US
from maiprof_widgets import escaping
from maiprof_widgets.views import _memory_words as words
from maiprof_widgets.views._peak_words import stack_names, unit_of

TITLES = {"stack": "Stack", "line": "Line of your code", "category": "What it is for"}
_KEY = {"stack": "label", "line": "label", "category": "category"}


def signed(count_bytes: int) -> str:
    """Bytes as text, with their sign."""
    sign = "+" if count_bytes > 0 else "-" if count_bytes < 0 else ""
    return f"{sign}{units.size(abs(count_bytes))}"


def verdict(before: Moment, after: Moment, names: tuple[str, str], by_line: pd.DataFrame) -> str:
    """What grew, and which line holds most of it, as HTML."""
    grown = after.size_bytes - before.size_bytes
    figure = f"{signed(grown)} between {_when(before, names[0])} and {_when(after, names[1])}"
    levels = f"{units.size(before.size_bytes)} then, {units.size(after.size_bytes)} later."
    told = " ".join([levels, *_most(by_line, "grew"), *_most(by_line, "shrank")])
    return (
        f'<div class="maiprof-verdict"><b class="maiprof-figure">{escaping.text(figure)}</b>'
        f"<div>{escaping.text(told)}</div></div>"
    )


def _when(moment: Moment, name: str) -> str:
    if moment.log.device.axis == "state":
        return name
    return f"{name} ({words.moment(moment.log, moment.ts_ns / NS_PER_US)})"


def _most(by_line: pd.DataFrame, what: str) -> list[str]:
    """The line with most of what grew (or shrank), and its share of that."""
    sign = 1 if what == "grew" else -1
    change = sign * by_line["grown_bytes"]
    every = int(change[change > 0].sum())
    if not every:
        return []
    row = by_line.loc[change.idxmax()]
    share = units.percent(int(change.max()) / every)
    blocks = sign * int(row["grown_blocks"])
    noun = "more" if what == "grew" else "fewer"
    count = (
        f", {units.count(blocks)} {noun} block{'s' if blocks != 1 else ''}" if blocks > 0 else ""
    )
    name = words.short(str(row["label"]))
    return [
        f"{share} of the {units.size(every)} that {what} is from {name}: "
        f"{signed(sign * int(change.max()))}{count}."
    ]


def table(found: pd.DataFrame, by: str, before: Moment, after: Moment) -> pd.DataFrame:
    """The columns people read of `maiprof_nb.analysis.memory_diff`."""
    most = found[["before_bytes", "after_bytes"]].to_numpy().max(initial=0)
    scale, unit = unit_of(float(most))
    every = max(int(found["grown_bytes"].clip(lower=0).sum()), 1)
    return pd.DataFrame(
        {
            TITLES[by]: _names(found, by, before, after),
            f"Before ({unit})": (found["before_bytes"] / scale).round(3),
            f"After ({unit})": (found["after_bytes"] / scale).round(3),
            f"Grown ({unit})": (found["grown_bytes"] / scale).round(3) + 0.0,  # no -0.0
            "Of what grew (%)": (100 * found["grown_bytes"].clip(lower=0) / every).round(1),
            "Blocks before": found["before_blocks"],
            "Blocks after": found["after_blocks"],
            "Blocks grown": found["grown_blocks"],
        }
    )


def _names(found: pd.DataFrame, by: str, before: Moment, after: Moment) -> list[str]:
    told = found[_KEY[by]].astype(object).map(lambda label: words.short(str(label)))
    if by == "stack":
        for moment, column, mine in (
            (before, "before_stack", found["after_stack"].isna()),
            (after, "after_stack", found["after_stack"].notna()),
        ):
            rows = found.index[mine & found[column].notna()]
            stacks = [int(one) for one in found.loc[rows, column]]
            told[rows] = stack_names(moment.log, stacks)
    return [escaping.visible(one) for one in told]


def frames(found: pd.Series, before: Moment, after: Moment) -> str:
    """The stack with most bytes in a row, as HTML; innermost frame first."""
    for moment, column in ((after, "after_stack"), (before, "before_stack")):
        if not pd.isna(found[column]):
            lines = words.brief_stack(moment.log, int(found[column]))
            text = "\n".join(escaping.text(words.short(line)) for line in lines)
            name = escaping.text(signed(int(found["grown_bytes"])))
            return (
                f'<div class="maiprof-chosen"><b>{name}</b>, its largest stack, innermost first:'
                f'<pre class="maiprof-frames">{text}</pre></div>'
            )
    return ""
