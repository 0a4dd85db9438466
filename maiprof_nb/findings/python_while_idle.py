"""Step 2 asks: what does the host do while the GPU is idle."""

from __future__ import annotations

import re

import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.device_activity import gaps
from maiprof_nb.analysis.python_in_gaps import functions_in_gaps
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.findings.trust import reservations
from maiprof_nb.findings.verdict import Verdict
from maiprof_nb.session import Session

_FRAME = re.compile(r"^(?P<file>.+\.py)\((?P<line>\d+)\): (?P<function>.+)$")
_NOT_THE_USERS = re.compile(
    r"^<|(?:^|/)(?:torch|numpy|pandas|concurrent|threading|multiprocessing|asyncio|queue|selectors|runpy|importlib)(?:/|\.py)|site-packages/|/lib/python3"
)
_LOADING = re.compile(
    r"iterrows|dataloader|dataset|load|read|decode|collate|fetch|parse|next_batch", re.IGNORECASE
)

_TELLING_SHARE = 0.2
_INPUT = (
    "The host prepares input and the GPU waits for it: the job is input-bound.",
    "Set num_worker_threads (or num_workers of the DataLoader) to what the host's cores allow, "
    "and prefetch the next sub-dataset while this one is worked through. Size of the change: "
    "1 line.",
)
_SCATTERED = (
    "No single function holds the gaps: many short calls follow one another and the GPU waits "
    "for each launch (launch-bound), or waits in places that differ from step to step.",
    "Give each launch more work: a larger batch, torch.compile, or CUDA graphs.",
)
_OTHER = (
    "This is what ran during the gaps; it is their likely, not their proven, cause.",
    "Move this work out of the training loop, or do it ahead in another thread.",
)
_NO_PYTHON = (
    "Only operators and ranges are known, not the lines of Python between them. Much time in "
    "cudaLaunchKernel or in many short operators means that the host cannot launch fast enough; "
    "in a synchronisation, that the host waits for the GPU first.",
    "Record again with torch.profiler.profile(with_stack=True) for the Python lines.",
)


def python_verdict(session: Session) -> Verdict:
    """Name the user's functions that take the most time while every GPU is idle.

    Raises
    ------
    NotAnswerableError
        If no device work, or no host functions inside gaps, were recorded.
    """
    idle_ns = int(gaps(session)["dur_ns"].sum())
    found = functions_in_gaps(session)
    if found.empty:
        raise NotAnswerableError(
            "no host event lies in the gaps, so nothing says what the host did",
            remedy="Record with ProfilerActivity.CPU and with_stack=True",
        )
    users = found[(found["kind"] == "python") & ~found["name"].str.contains(_NOT_THE_USERS)]
    own = users.sort_values("self_in_gaps_ns", ascending=False)
    if own.empty or own["self_in_gaps_ns"].iloc[0] == 0:
        return _without_python(session, found, idle_ns)
    top = own.iloc[0]
    caller = _telling(users, "total_in_gaps_ns", top["name"])
    waiting = _telling(users, "loop_in_gaps_ns", top["name"])
    figure = (
        f"While the GPU was idle ({units.duration(idle_ns)}), {_name(top['name'])} took most: "
        f"{units.duration(top['self_in_gaps_ns'])} of its own, summed over "
        f"{top['threads']} thread(s)"
        + (f", called from {caller}" if caller else "")
        + (f", while the training loop was in {waiting}" if waiting not in {"", caller} else "")
        + "."
    )
    loading = _LOADING.search(f"{top['name']} {caller} {waiting}")
    scattered = top["self_in_gaps_ns"] < _TELLING_SHARE * idle_ns
    return _verdict(
        session, figure, found, _INPUT if loading else _SCATTERED if scattered else _OTHER
    )


def _without_python(session: Session, found: pd.DataFrame, idle_ns: int) -> Verdict:
    """The answer by operators and ranges, where no Python functions were recorded."""
    top = found.iloc[0]
    figure = (
        f"While the GPU was idle ({units.duration(idle_ns)}), the host spent most time in "
        f"{top['name']}: {units.duration(top['self_in_gaps_ns'])} of its own in "
        f"{units.count(top['calls'])} call(s)."
    )
    loading = _LOADING.search(str(top["name"]))
    return _verdict(session, figure, found, _INPUT if loading else _NO_PYTHON)


def _verdict(session: Session, figure: str, found: pd.DataFrame, words: tuple[str, str]) -> Verdict:
    return Verdict(
        question="What does the host do while the GPU is idle?",
        figure=figure,
        meaning=words[0],
        attempt=words[1],
        evidence=found.head(20),
        reservations=reservations(session, "gaps", "python-in-gaps"),
    )


def _telling(users: pd.DataFrame, column: str, top: str) -> str:
    """The user's function, other than the top one, that loads data and holds most of a column."""
    others = users[(users["name"] != top) & users["name"].str.contains(_LOADING)]
    others = others[others[column] > 0].sort_values(column, ascending=False)
    return _name(str(others["name"].iloc[0])) if len(others) else ""


def _name(frame: str) -> str:
    found = _FRAME.match(frame)
    return f"{found['function']}() in {found['file']} line {found['line']}" if found else frame
