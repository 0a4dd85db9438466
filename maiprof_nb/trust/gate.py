"""Which checks fail, and what that means for a figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.errors import UsageError
from maiprof_nb.session import Session
from maiprof_nb.trust import (
    clocks,
    durations,
    launches,
    memory,
    metrics,
    options,
    overlaps,
    ranks,
    reading,
    steps,
)
from maiprof_nb.trust.figures import FIGURES
from maiprof_nb.trust.rule import FAILED, PASSED, Result, Rule, not_applicable
from maiprof_nb.trust.trace import Trace

OK, REDUCED, NOT_ANSWERABLE = "ok", "reduced", "not answerable"

RULES: tuple[Rule, ...] = (
    launches.no_device_work,
    launches.no_links,
    launches.without_work,
    launches.without_launch,
    launches.lost_at_start,
    durations.one_long_event,
    durations.absurd_duration,
    overlaps.overlapping_work,
    overlaps.host_events_cross,
    overlaps.duplicates,
    steps.torn_steps,
    clocks.work_before_launch,
    clocks.off_axis,
    clocks.clock_uncertain,
    clocks.rank_clocks,
    ranks.missing_ranks,
    memory.memory_empty,
    memory.log_missing,
    memory.log_begins_late,
    memory.log_inconsistent,
    metrics.metric_gaps,
    metrics.utilisation_unmeasured,
    options.stacks_missing,
    options.shapes_missing,
    options.overhead_recorded,
    options.profiler_overhead,
    reading.file_cut,
    reading.events_lost,
    reading.unfinished,
    reading.simulated,
)
_BY_ID = {rule.id: rule for rule in RULES}


@dataclass(frozen=True, slots=True)
class Trust:
    """Whether a figure can be believed.

    Parameters
    ----------
    state : str
        ``ok``, ``reduced`` or ``not answerable``.
    reasons : tuple of str
        Why, as sentences, weightiest first. With ``ok`` they are statements that belong
        beside the figure and take nothing from it.
    """

    state: str
    reasons: tuple[str, ...] = ()


def checks(session: Session) -> pd.DataFrame:
    """Every check of every recording.

    Returns
    -------
    DataFrame
        One row a rule and recording (a rule about the session as a whole has one row without
        recording): ``id``, ``outcome`` (``passed``, ``failed``, ``not-applicable``), ``affects``
        (tuple of names of `FIGURES`), ``count`` (rows concerned), ``share`` (0 to 1 of what
        was looked at; NaN where none can be stated), ``reason``, ``remedy``, ``recording``,
        ``rank``.

    Notes
    -----
    The recordings are checked as a whole, whatever time is selected: a window cuts launches
    from their work, which is no fault of the recording. Ranks that are not selected are left
    out.
    """
    table = _all_checks(session.whole)
    chosen = session.selected_ranks
    if chosen is None:
        return table
    shown = table["rank"].isna() | table["rank"].isin(chosen)
    return table[shown].reset_index(drop=True)


def trust(session: Session, figure: str) -> Trust:
    """Whether a figure of this session can be believed, and why not.

    Parameters
    ----------
    session : Session
        What was recorded.
    figure : str
        A name of `FIGURES`.

    Raises
    ------
    UsageError
        If there is no such figure.

    Notes
    -----
    A fault that prevents a figure for some recordings only, while others pass, reduces it.
    """
    if figure not in FIGURES:
        raise UsageError(f"there is no figure {figure}", remedy=f"Figures: {', '.join(FIGURES)}")
    table = checks(session)
    concerned = table[[figure in affected for affected in table["affects"]]]
    states: set[str] = set()
    reasons: list[tuple[int, str]] = []
    for name, rows in concerned.groupby("id", sort=False):
        faulty = rows[rows["outcome"] == FAILED]
        if faulty.empty:
            continue
        state = _state(_BY_ID[str(name)], figure, sound=(rows["outcome"] == PASSED).any())
        states.add(state)
        weight = (NOT_ANSWERABLE, REDUCED, OK).index(state)
        reasons.append((weight, _sentence(faulty, state, session)))
    if NOT_ANSWERABLE not in states:
        lacking = FIGURES[figure].lacking(session.whole)
        if lacking:
            states.add(NOT_ANSWERABLE)
            reasons.append((-1, lacking))
    worst = next((s for s in (NOT_ANSWERABLE, REDUCED) if s in states), OK)
    ordered = sorted(reasons, key=lambda pair: pair[0])
    return Trust(worst, tuple(text for _, text in ordered))


def _state(rule: Rule, figure: str, *, sound: bool) -> str:
    if figure in rule.prevents:
        return REDUCED if sound else NOT_ANSWERABLE
    return REDUCED if figure in rule.reduces else OK


def _sentence(faulty: pd.DataFrame, state: str, session: Session) -> str:
    """The reason of the recording that has it worst, and how many more have it."""
    worst = faulty.sort_values("share", ascending=False, na_position="last").iloc[0]
    text = str(worst["reason"])
    if state == NOT_ANSWERABLE:
        text = f"{text} {worst['remedy']}."
    if len(session.recordings) > 1 and pd.notna(worst["rank"]):
        text = f"Rank {worst['rank']}: {text}"
    more = len(faulty) - 1
    return (
        f"{text} (So in {units.count(more)} more recording{'s' if more > 1 else ''}.)"
        if more
        else text
    )


@remembered
def _all_checks(session: Session) -> pd.DataFrame:
    rows = [
        {
            "id": rule.id,
            "outcome": result.outcome,
            "affects": rule.affects,
            "count": result.count,
            "share": result.share,
            "reason": result.reason,
            "remedy": rule.remedy,
            "recording": recording,
            "rank": None if recording is None else session.recordings[recording].rank,
        }
        for rule, recording, result in _results(session)
    ]
    return pd.DataFrame(rows).astype({"recording": "Int64", "rank": "Int64"})


def _results(session: Session) -> Iterator[tuple[Rule, int | None, Result]]:
    subjects = _subjects(session)
    for rule in RULES:
        if rule.of == "session":
            yield rule, None, rule.check(session)
            continue
        if not subjects[rule.of]:
            yield rule, None, not_applicable(f"the session holds no {rule.of}")
        for number, subject in subjects[rule.of]:
            yield rule, number, rule.check(subject)


def _subjects(session: Session) -> dict[str, list[tuple[int, Any]]]:
    """What the rules of each kind are given, with the numbers of the recordings."""
    as_they_are: dict[str, Callable[[Any], Any]] = {
        "trace": Trace,
        "snapshot": lambda recording: recording,
        "metrics": lambda recording: recording,
    }
    found: dict[str, list[tuple[int, Any]]] = {kind: [] for kind in as_they_are}
    found["recording"] = list(enumerate(session.recordings))
    for number, recording in enumerate(session.recordings):
        if recording.kind in as_they_are:  # there are no rules for sampled stacks, e.g.
            found[recording.kind].append((number, as_they_are[recording.kind](recording)))
    return found
