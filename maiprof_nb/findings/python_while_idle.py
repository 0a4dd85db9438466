"""Step 2 asks: what does the host do while the GPU is idle."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis._host_calls import host_calls
from maiprof_nb.analysis.device_activity import activities
from maiprof_nb.analysis.gap_causes import CAUSES, cause_column, gap_causes
from maiprof_nb.analysis.python_in_gaps import all_idle, functions_in_gaps
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.findings._gap_advice import ADVICE, OTHER, RECORD_STACKS, SCATTERED
from maiprof_nb.findings._wording import times
from maiprof_nb.findings.trust import reservations
from maiprof_nb.findings.verdict import Verdict
from maiprof_nb.session import Session

_FRAME = re.compile(r"^(?P<file>.+\.py)\((?P<line>\d+)\): (?P<function>.+)$")
_NOT_THE_USERS = re.compile(
    r"^<|(?:^|/)(?:torch|numpy|pandas|concurrent|threading|multiprocessing|asyncio|queue|selectors|runpy|importlib)(?:/|\.py)|site-packages/|/lib/python3"
)
_LOADING = re.compile(
    r"iterrows|data_?loader|dataset|collate|next_batch"
    r"|(?:^|\s)_*(?:load|read|decode|fetch|parse)(?![a-z])",
    re.IGNORECASE,
)

_TELLING_SHARE = 0.2
_WORTH_NAMING = 0.01  # a cause with less of the gaps is not in the sentence
_UNKNOWN = "unrecorded"
_FED = ("input", _UNKNOWN)  # causes beside which functions that load data are worth naming


def python_verdict(session: Session) -> Verdict:
    """Name the user's functions that take the most time while every GPU is idle.

    What it means, and what to try, follow from the causes of the gaps.

    Raises
    ------
    NotAnswerableError
        If no device work, or no host functions inside gaps, were recorded.
    """
    idle_ns = all_idle(session).length_ns
    if not idle_ns:
        raise NotAnswerableError(
            "there is no time in which every device is idle",
            remedy="Choose one rank, or read the utilisation of each device",
        )
    found = functions_in_gaps(session)
    if found.empty:
        raise NotAnswerableError(
            "no host event lies in the gaps, so nothing says what the host did",
            remedy="Record with ProfilerActivity.CPU and with_stack=True",
        )
    users = found[(found["kind"] == "python") & ~found["name"].str.contains(_NOT_THE_USERS)]
    causes = _causes(session)
    own = users.sort_values("self_in_gaps_ns", ascending=False)
    on_loop = found[found["loop_in_gaps_ns"] > 0]  # not what only waits in a thread of its own
    named = (found if on_loop.empty else on_loop).iloc[0]
    scattered = own.empty or own["self_in_gaps_ns"].iloc[0] < _TELLING_SHARE * idle_ns
    held = named["self_in_gaps_ns"] >= _TELLING_SHARE * idle_ns
    if own.empty or own["self_in_gaps_ns"].iloc[0] == 0 or (scattered and held):
        did = _of_any_kind(named, _longest_line(session))
    else:
        named = own.iloc[0]
        did = _of_the_users(session, users, named, loading=str(causes.index[0]) in _FED)
    cause = _cause_of(causes, did)
    several = len(activities(session)) > 1
    words = ADVICE.get(cause) or (SCATTERED if scattered else OTHER)
    return Verdict(
        question="What does the host do while the GPU is idle?",
        figure=f"While {'every' if several else 'the'} GPU was idle "
        f"({units.duration(idle_ns)}), {did}.{_said(causes)}",
        meaning=words[0],
        attempt=words[1] + ("" if len(users) else RECORD_STACKS),
        evidence=found.head(20),
        reservations=reservations(session, "gaps", "python-in-gaps"),
    )


def _of_the_users(session: Session, users: pd.DataFrame, top: pd.Series, *, loading: bool) -> str:
    """The user's function with most time of its own; in loading, also its caller and the loop."""
    taken = (
        f"{_name(top['name'])} took most: {units.duration(top['self_in_gaps_ns'])} of its own, "
        f"summed over {times(top['threads'], 'thread')}"
    )
    if not loading:
        return taken
    callers = _callers(session, top["name"])
    caller = _loading(users[users["name"].isin(callers)], "total_in_gaps_ns", top["name"])
    waiting = _loading(users, "loop_in_gaps_ns", top["name"])
    return (
        taken
        + (f", called from {caller}" if caller else "")
        + (f", while the training loop was in {waiting}" if waiting not in {"", caller} else "")
    )


def _of_any_kind(top: pd.Series, line: str) -> str:
    """The operator, range or call with most time of its own."""
    return (
        f"the host spent most time in {_name(top['name'])}: "
        f"{units.duration(top['self_in_gaps_ns'])} of its own in {times(top['calls'], 'call')}"
        + (f", summed over {units.count(top['threads'])} threads" if top["threads"] > 1 else "")
        + (f"; the line with the longest gaps is {line}" if line else "")
    )


def _causes(session: Session) -> pd.Series:
    """Share of the gaps of all devices that each cause has, largest first."""
    found = gap_causes(session)
    spent = pd.Series({cause: found[cause_column(cause)].sum() for cause in CAUSES})
    return (spent / max(found["dur_ns"].sum(), 1)).sort_values(ascending=False)


def _cause_of(causes: pd.Series, did: str) -> str:
    """The largest cause; of gaps with no launch to tell it, the names speak for input."""
    largest = str(causes.index[0])
    if largest == _UNKNOWN and _LOADING.search(did):
        return "input"
    return largest


def _said(causes: pd.Series) -> str:
    worth = causes[causes >= _WORTH_NAMING].head(3)
    parts = ", ".join(f"{cause} {units.percent(share)}" for cause, share in worth.items())
    return f" Causes of the gaps: {parts}." if parts else ""


def _longest_line(session: Session) -> str:
    """The user's line with most gap time, where one is known."""
    found = gap_causes(session)
    sums = found[found["user_line"].notna()].groupby("user_line")["dur_ns"].sum()
    return _name(str(sums.idxmax())) if len(sums) else ""


def _callers(session: Session, name: str) -> set[str]:
    """Every function that `name` was called from, at any depth."""
    calls = host_calls(session)
    names, parent = calls["name"], calls["parent"].to_numpy(np.int64)
    rows = np.flatnonzero((names == name).to_numpy())
    found: set[str] = set()
    while len(rows):  # a pass a level of the stack
        rows = np.unique(parent[rows])
        rows = rows[rows >= 0]
        found.update(names.iloc[rows].astype("str").unique())
    return found


def _loading(users: pd.DataFrame, column: str, top: str) -> str:
    """The function, other than the top one, that loads data and holds most of a column."""
    others = users[(users["name"] != top) & users["name"].str.contains(_LOADING)]
    others = others[others[column] > 0].sort_values(column, ascending=False)
    return _name(str(others["name"].iloc[0])) if len(others) else ""


def _name(frame: str) -> str:
    found = _FRAME.match(frame)
    return f"{found['function']}() in {found['file']} line {found['line']}" if found else frame
