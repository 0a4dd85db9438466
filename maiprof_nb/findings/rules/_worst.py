"""The device that has it worst, and gaps as evidence."""

from __future__ import annotations

from typing import Any

import pandas as pd


def worst_device(found: pd.DataFrame, column: str) -> pd.DataFrame:
    """Rows of the device with the largest sum of a column; costs of devices never add up."""
    if found.empty:
        return found
    keys = ["recording", "device"]
    sums = found.groupby(keys, dropna=False)[column].sum().reset_index()
    return found.merge(sums.nlargest(1, column)[keys], on=keys)


def gap_rows(found: pd.DataFrame, column: str, count: int = 10) -> list[dict[str, Any]]:
    """The gaps with most of one cause."""
    return [
        {
            "table": "gaps",
            "recording": int(row["recording"]),
            "ts_ns": int(row["ts_ns"]),
            "dur_ns": int(row["dur_ns"]),
            column: int(row[column]),
            "line": _line(row),
        }
        for row in found.nlargest(count, column).to_dict("records")
        if row[column] > 0
    ]


def _line(gap: dict[str, Any]) -> str | None:
    """The user's line in the gap, else the innermost function, else who launched what ends it."""
    lines = [gap["user_line"], gap["line"]]
    ordered = reversed(lines) if gap["line_of"] == "launch" else lines
    return next((line for line in ordered if isinstance(line, str)), None)


def event_rows(
    found: pd.DataFrame, table: str | None = None, count: int = 10, **more: str
) -> list[dict[str, Any]]:
    """Rows of a table as they are; `more` names further columns to show, and as what."""
    return [
        {
            "table": table or str(row["table"]),
            "recording": int(row["recording"]),
            "event": int(row["event"]),
            "ts_ns": int(row["ts_ns"]),
            "dur_ns": int(row["dur_ns"]),
        }
        | {shown: None if pd.isna(row[column]) else row[column] for shown, column in more.items()}
        for row in found.head(count).to_dict("records")
    ]
