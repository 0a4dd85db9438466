"""Which forward operator made each function of the backward pass."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pandas as pd

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_BACKWARD = re.compile(r"^autograd::engine::evaluate_function|Backward\d*$|AccumulateGrad$")
_THREAD = ["recording", "pid", "tid"]
_MAKERS = ["recording", "pid", "forward_thread"]


def forward_of(operators: pd.DataFrame) -> Ints:
    """The operator whose call made each backward function, as a row number; else -1.

    Parameters
    ----------
    operators : DataFrame
        The table (or rows of it) of one or several recordings.

    Notes
    -----
    Autograd counts the nodes that each thread makes. An operator carries the count when it
    begins, the backward function that of its node. So every operator from one node to the next
    carries the same number, callers (``aten::linear`` and its ``aten::t``) and operators that
    make no node at all, and the maker is the one among them that *began last*; the rule is that
    of PyTorch's own arrows (`generateForwardBackwardLinks`). Counts of several threads repeat
    one another: the thread is the one that has most of the numbers that the backward functions
    of one ``Fwd thread id`` ask for, and if two have as many, nothing is linked.
    """
    numbered = operators[operators["sequence"].notna()]
    backward = _is_backward(numbered)
    asking, makers = numbered[backward], numbered[~backward]
    found = np.full(len(operators), -1, dtype=np.int64)
    if asking.empty or makers.empty:
        return found
    rows = np.flatnonzero(operators["sequence"].notna().to_numpy())
    asked, made = _same_threads(asking, makers)
    last = _latest_before(asked, made)
    found[rows[backward]] = np.where(last >= 0, rows[~backward][np.maximum(last, 0)], -1)
    return found


def _is_backward(numbered: pd.DataFrame) -> Bools:
    """By the thread of the forward, which only backward functions state; else by name."""
    stated = numbered["forward_thread"]
    named = np.array([bool(_BACKWARD.search(t)) for t in numbered["name"].cat.categories] + [False])
    by_name = named[numbered["name"].cat.codes.to_numpy()]
    return np.where(stated.notna(), stated.fillna(0) > 0, by_name).astype(bool)


def _same_threads(asking: pd.DataFrame, makers: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Start, number and thread (of the forward; -1 = cannot be told) of both sides."""
    threads = makers.groupby(_THREAD, observed=True, dropna=False).ngroup().to_numpy(np.int64)
    made = pd.DataFrame({"thread": threads, **_start_and_number(makers)})
    groups = asking.groupby(_MAKERS, observed=True, dropna=False).ngroup().to_numpy(np.int64)
    asked = pd.DataFrame({"group": groups, **_start_and_number(asking)})
    process = ["recording", "pid"]
    both = pd.concat([makers[process], asking[process]], ignore_index=True)
    place = both.groupby(process, observed=True, dropna=False).ngroup().to_numpy(np.int64)
    made["place"], asked["place"] = place[: len(made)], place[len(made) :]
    pairs = asked[["group", "place", "number"]].drop_duplicates()
    pairs = pairs.merge(
        made[["thread", "place", "number"]].drop_duplicates(), on=["place", "number"]
    )
    shared = pairs.groupby(["group", "thread"]).size().rename("shared").reset_index()
    most = shared.groupby("group")["shared"].transform("max")
    best = shared[shared["shared"] == most]
    best = best[~best["group"].duplicated(keep=False)].set_index("group")["thread"]
    thread = asked["group"].map(best).fillna(-1).astype("int64")
    return asked.assign(thread=thread), made


def _start_and_number(rows: pd.DataFrame) -> dict[str, Ints]:
    return {
        "ts_ns": rows["ts_ns"].to_numpy(np.int64),
        "number": rows["sequence"].to_numpy(np.int64),
    }


def _latest_before(asked: pd.DataFrame, made: pd.DataFrame) -> Ints:
    """Position in `made` of the last with the same thread and number that began before, or -1."""
    count = len(made)
    both = pd.concat([made, asked], ignore_index=True)[["thread", "number", "ts_ns"]]
    key = both.groupby(["thread", "number"]).ngroup().to_numpy(np.int64)
    is_asked = np.arange(len(both)) >= count
    order = np.lexsort((~is_asked, both["ts_ns"].to_numpy(np.int64), key))
    made_at = np.where(is_asked[order], -1, np.arange(len(order)))
    latest = np.maximum.accumulate(made_at)
    at = np.maximum(latest, 0)
    same = (latest >= 0) & (key[order[at]] == key[order])
    found = np.full(len(both), -1, dtype=np.int64)
    found[order] = np.where(same, order[at], -1)
    return found[count:]
