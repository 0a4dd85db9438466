"""Passes of a generating model: prefill (one wide pass), decode (a train of narrow ones)."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis.launched_work import launched_work
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.session import Session

Ints = npt.NDArray[np.int64]

BY_MARK, BY_SHAPE = "the server's marks", "the width of the model's calls"
PREFILL, DECODE, MIXED = "prefill", "decode", "mixed"
_FEWEST_DECODES = 3

# vLLM and SGLang mark each pass with how many requests are at which stage.
_EXECUTE = re.compile(
    r"^execute_(?:\d+_)?context_(?P<first>\d+)\(\D*(?P<first_tokens>\d+)[^)]*\)"
    r"_generation_(?P<later>\d+)\(\D*(?P<later_tokens>\d+)[^)]*\)$"
)
_STEP = re.compile(
    r"^step\[(?P<stage>DECODE|EXTEND|PREFILL|MIXED)\b[^\]]*?\bbs=(?P<count>\d+)"
    r"(?:[^\]]*?\btoks=(?P<tokens>\d+))?"
)
_MODULE = re.compile(r"^nn\.Module: ")
_TRAINING = re.compile(r"^autograd::engine::evaluate_function|^Optimizer\.step#")
_COLUMNS = ["recording", "rank", "ts_ns", "dur_ns"]


@remembered
def generation(session: Session) -> pd.DataFrame:
    """Passes of the model while it generates text, each as prefill, decode or mixed.

    Returns
    -------
    DataFrame
        In order of time: ``recording``, ``rank``, ``ts_ns``, ``dur_ns`` (host time of the pass),
        ``end_ns`` (of the pass or of the last device work launched in it), ``stage`` (prefill,
        decode, mixed), ``prefill_requests``, ``prefill_tokens``, ``decode_requests``, ``tokens``
        (those of the prompts and one a decoding request; missing where not stated),
        ``device_ns`` (durations of device work launched in it, summed), ``launches`` (calls that
        started any), ``kernels`` and ``recognised_by``.

    Raises
    ------
    NotAnswerableError
        If the recording shows no generation: neither marks of a server, nor a wide call of one
        module that at least three narrow ones follow.

    Notes
    -----
    Where no server marked its passes, outermost calls of one module are told by the width of
    their embedding's input (record_shapes): more than one token a sequence is prefill.
    A pass launched as one graph launches one piece of work and runs many: those count here.
    """
    found = _passes(session)
    if found.empty:
        raise NotAnswerableError(
            "the recording shows no generation of text in prefill and decode",
            remedy="Record model.generate() or a server's passes with record_shapes=True and "
            "with_stack=True",
        )
    found = found.sort_values(["recording", "ts_ns"], ignore_index=True)
    found = found.assign(tokens=found["prefill_tokens"] + found["decode_requests"])
    return found.assign(**_launched(session, found))[
        [*_COLUMNS, "end_ns", "stage", "prefill_requests", "prefill_tokens", "decode_requests",
         "tokens", "device_ns", "launches", "kernels", "recognised_by"]
    ]  # fmt: skip


def generates(session: Session) -> bool:
    """Whether the recording shows generation of text, and no training beside it."""
    return not _trains(session) and not _passes(session).empty


@remembered
def _passes(session: Session) -> pd.DataFrame:
    """Passes by the servers' marks; where there are none, by the width of a model's calls."""
    marked = _marked(session)
    return _by_width(session) if marked.empty else marked


def _trains(session: Session) -> bool:
    return any(
        len(_names_like(session.table(table), _TRAINING)) for table in ("operators", "annotations")
    )


def _names_like(rows: pd.DataFrame, pattern: re.Pattern[str]) -> list[str]:
    """Names of a table that match; each is looked at once."""
    return [name for name in rows["name"].cat.categories if pattern.search(str(name))]


def _marked(session: Session) -> pd.DataFrame:
    ranges = session.table("annotations")
    for rule, read in ((_EXECUTE, _executed), (_STEP, _stepped)):
        known = {name: read(rule.match(str(name))) for name in _names_like(ranges, rule)}
        mine = ranges["name"].isin(list(known)).to_numpy()
        if mine.any():
            facts = pd.DataFrame([known[name] for name in ranges["name"][mine]])
            made = pd.concat([ranges[mine][_COLUMNS].reset_index(drop=True), facts], axis=1)
            return _typed(made.assign(recognised_by=BY_MARK))
    return _typed(ranges.head(0)[_COLUMNS].assign(**_facts("", None, None, None), recognised_by=""))


def _facts(stage: str, first: Any, tokens: Any, later: Any) -> dict[str, Any]:
    return {
        "stage": stage,
        "prefill_requests": first,
        "prefill_tokens": tokens,
        "decode_requests": later,
    }


def _executed(found: Any) -> dict[str, Any]:
    first, later = int(found["first"]), int(found["later"])
    stage = MIXED if first and later else PREFILL if first else DECODE
    return _facts(stage, first, int(found["first_tokens"]) if first else 0, later)


def _stepped(found: Any) -> dict[str, Any]:
    stage = {"DECODE": DECODE, "MIXED": MIXED}.get(found["stage"], PREFILL)
    count = int(found["count"])
    tokens = int(found["tokens"]) if found["tokens"] else None
    if stage == DECODE:
        return _facts(stage, 0, 0, count)
    return _facts(
        stage, count if stage == PREFILL else None, tokens, 0 if stage == PREFILL else None
    )


def _typed(found: pd.DataFrame) -> pd.DataFrame:
    counts = dict.fromkeys(("prefill_requests", "prefill_tokens", "decode_requests"), "Int64")
    return found.astype(counts)


def _by_width(session: Session) -> pd.DataFrame:
    """Outermost calls of one module by how many tokens a sequence its embedding takes."""
    operators = session.table("operators")
    calls = session.table("python_calls")
    calls = calls[calls["name"].isin(_names_like(calls, _MODULE))]
    nothing = _typed(
        calls.head(0)[_COLUMNS].assign(**_facts("", None, None, None), recognised_by="")
    )
    if calls.empty or _trains(session):
        return nothing
    lookups = operators[(operators["name"] == "aten::embedding") & operators["input_dims"].notna()]
    passes = _outermost(calls)
    if lookups.empty or passes.empty:
        return nothing
    index = np.searchsorted(passes["ts_ns"].to_numpy(), lookups["ts_ns"].to_numpy(), "right") - 1
    end = (passes["ts_ns"] + passes["dur_ns"]).to_numpy()
    inside = (index >= 0) & (lookups["ts_ns"].to_numpy() < end[np.maximum(index, 0)])
    first = pd.DataFrame(
        {"row": index[inside], "dims": lookups["input_dims"].astype("str").to_numpy()[inside]}
    ).drop_duplicates("row")
    widths = [_width(dims) for dims in first["dims"]]
    first = first.assign(
        batch=[width[0] if width else -1 for width in widths],
        tokens=[width[1] if width else -1 for width in widths],
    )
    first = first[first["tokens"] > 0]
    narrow = (first["tokens"] == 1).to_numpy()
    if narrow.sum() < _FEWEST_DECODES or narrow.all():
        return nothing
    made = passes.iloc[first["row"]][_COLUMNS].reset_index(drop=True)
    batch, tokens = first["batch"].to_numpy(), first["tokens"].to_numpy()
    return _typed(
        made.assign(
            stage=np.where(narrow, DECODE, PREFILL),
            prefill_requests=np.where(narrow, 0, batch),
            prefill_tokens=np.where(narrow, 0, batch * tokens),
            decode_requests=np.where(narrow, batch, 0),
            recognised_by=BY_SHAPE,
        )
    )


def _outermost(calls: pd.DataFrame) -> pd.DataFrame:
    """Calls of modules in no other, of the recording and thread with most of them."""
    by = calls.groupby(["recording", "pid", "tid"], observed=True)
    rows = by.get_group(by.size().idxmax()).sort_values(
        ["ts_ns", "dur_ns"], ascending=[True, False]
    )
    end = (rows["ts_ns"] + rows["dur_ns"]).to_numpy(np.int64)
    reached = np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(end)[:-1]))
    return rows[rows["ts_ns"].to_numpy(np.int64) >= reached].reset_index(drop=True)


def _width(dims: str) -> tuple[int, int] | None:
    """Sequences and tokens a sequence of `aten::embedding`'s indices."""
    shapes = re.findall(r"\[([\d, ]*)\]", dims)
    if len(shapes) < 2:
        return None
    sizes = [int(size) for size in shapes[1].replace(" ", "").split(",") if size]
    if not sizes:
        return None
    return (1, sizes[0]) if len(sizes) == 1 else (int(np.prod(sizes[:-1])), sizes[-1])


def _launched(session: Session, found: pd.DataFrame) -> dict[str, Ints]:
    """End, durations and numbers of the device work launched within each pass."""
    work = launched_work(session)
    known = (work["launch"] >= 0).to_numpy()
    moment = np.where(known, work["launch_ns"], work["ts_ns"])
    dur, first = work["dur_ns"].to_numpy(np.int64), work["first"].to_numpy()
    finish = work["ts_ns"].to_numpy(np.int64) + dur
    end = (found["ts_ns"] + found["dur_ns"]).to_numpy(np.int64).copy()
    device, launches, kernels = (np.zeros(len(found), dtype=np.int64) for _ in range(3))
    for recording, rows in found.groupby("recording"):
        mine = np.flatnonzero(work["recording"] == recording)
        index = np.searchsorted(rows["ts_ns"].to_numpy(), moment[mine], side="right") - 1
        place = rows.index.to_numpy()[np.maximum(index, 0)]
        inside = (index >= 0) & (
            moment[mine] < (found["ts_ns"] + found["dur_ns"]).to_numpy()[place]
        )
        mine, place = mine[inside], place[inside]
        np.add.at(device, place, dur[mine])
        np.add.at(launches, place, first[mine])
        np.add.at(kernels, place, 1)
        np.maximum.at(end, place, finish[mine])
    return {"end_ns": end, "device_ns": device, "launches": launches, "kernels": kernels}
