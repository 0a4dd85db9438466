"""When each epoch of the training began."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.session import Session

# A function of the user's (`train_epoch`, `run_one_epoch`); one for many (`train_epochs`) is none.
_FUNCTION = re.compile(r"\): \w*epoch(?!s)\w*$", re.IGNORECASE)
_LINE = re.compile(r"\(\d+\)(?=: )")
_ITERATOR = re.compile(r"dataloader\.py\(\d+\): __iter__$")


def epoch_starts(session: Session) -> pd.DataFrame:
    """Starts of epochs, where Python functions were recorded.

    Returns
    -------
    DataFrame
        ``recording``, ``ts_ns``, ``name`` of the function that began, in order of time. Of the
        functions with *epoch* in their name the one that takes most time in its recording;
        where there is none, the iterators that a data loader made. Empty without stacks.

    Notes
    -----
    A data loader makes an iterator for each validation, too.
    """
    calls = session.table("python_calls")[["recording", "ts_ns", "dur_ns", "name"]]
    parts = [_of_one(mine) for _, mine in calls.groupby("recording")]
    found = pd.concat([calls.iloc[:0], *parts])
    return found.astype({"name": "str"}).drop(columns="dur_ns").reset_index(drop=True)


def epochs_between(session: Session, recording: int, moments_ns: npt.ArrayLike) -> int | None:
    """Epochs begun from one of these moments to the next, on average; None where none was."""
    starts = epoch_starts(session)
    ts = np.sort(starts["ts_ns"][starts["recording"] == recording].to_numpy(np.int64))
    at = np.sort(np.asarray(moments_ns, dtype=np.int64))
    if len(at) < 2:
        return None
    first, last = np.searchsorted(ts, at[[0, -1]])
    return round(int(last - first) / (len(at) - 1)) or None


def _of_one(calls: pd.DataFrame) -> pd.DataFrame:
    """Rows of one recording that begin an epoch."""
    functions = _named(calls, _FUNCTION)
    if functions.empty:
        return _named(calls, _ITERATOR).sort_values("ts_ns")
    # A function that ran when the recording began stands there with the line it had reached.
    name = functions["name"].astype("str").str.replace(_LINE, "", regex=True)
    time = functions["dur_ns"].groupby(name).sum()
    return functions[name == time.idxmax()].sort_values("ts_ns")


def _named(calls: pd.DataFrame, rule: re.Pattern[str]) -> pd.DataFrame:
    names = calls["name"].cat.categories
    return calls[calls["name"].isin([name for name in names if rule.search(str(name))])]
