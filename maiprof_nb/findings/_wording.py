"""Phrases that verdicts and rules share."""

from __future__ import annotations

import pandas as pd

from maiprof_nb import units


def every(row: pd.Series) -> str:
    """``every 10 epochs (20 steps)``, or ``every 20 steps`` where no epochs were recorded."""
    steps, epochs = row["every_steps"], row["every_epochs"]
    if pd.isna(epochs):
        return f"every {units.count(int(steps))} steps"
    number = "epoch" if epochs == 1 else times(int(epochs), "epoch")
    return f"every {number} ({units.count(int(steps))} steps)"


def times(number: int, thing: str) -> str:
    """``1 compilation``, ``3 compilations``."""
    return f"{units.count(number)} {thing}{'' if number == 1 else 's'}"


def mean_of_devices(number: int) -> str:
    """`` (mean of 4 GPUs)``, or nothing where there is one."""
    return f" (mean of {units.count(number)} GPUs)" if number > 1 else ""
