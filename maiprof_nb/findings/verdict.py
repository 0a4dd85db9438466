"""A verdict: one figure in words, what it means, what to try."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class Verdict:
    """The answer of one step of the workflow.

    Parameters
    ----------
    question : str
        What was asked.
    figure : str
        The answer with its numbers.
    meaning : str
        What it means for the job, and what it does not mean.
    attempt : str
        What to try, with the size of the change; empty if nothing is called for.
    evidence : DataFrame
        The rows the figure was computed from, most telling first.
    reservations : tuple of str
        Why the figure may be off; empty if nothing is known against it.
    """

    question: str
    figure: str
    meaning: str
    attempt: str
    evidence: pd.DataFrame
    reservations: tuple[str, ...] = ()
