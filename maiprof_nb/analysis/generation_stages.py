"""What prefill and decode cost, and how busy they keep the device."""

from __future__ import annotations

import pandas as pd

from maiprof_nb.analysis._intervals import Union, merged, overlap, union
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis.device_activity import activities
from maiprof_nb.analysis.generation import DECODE, MIXED, PREFILL, generation
from maiprof_nb.session import Session

STAGES = (PREFILL, MIXED, DECODE)


@remembered
def generation_stages(session: Session) -> pd.DataFrame:
    """Passes of `generation` by recording and stage.

    Returns
    -------
    DataFrame
        ``recording``, ``rank``, ``stage``, ``passes``, ``tokens`` (missing where one pass does
        not state its own), ``host_ns`` (of the passes, summed), ``median_ns`` (host time of one
        pass), ``median_end_ns`` (from its start to the end of the device work launched in it),
        ``span_ns`` (time in which any pass of the stage runs, to the end of its device work),
        ``busy_share`` (of that time, with any work on a device of the recording; missing without
        device work), ``device_ns``, ``launches``, ``kernels``, ``kernels_per_pass`` and
        ``tokens_per_s`` (over ``span_ns``).

    Raises
    ------
    NotAnswerableError
        If the recording shows no generation.

    Notes
    -----
    A decoding request counts one token a pass: accepted drafts of speculative decoding do not
    show in a trace. Rates are as profiled, and over passes only: time between them is left out.
    """
    found = generation(session)
    busy = _busy(session)
    rows = []
    for (recording, stage), passes in found.groupby(["recording", "stage"]):
        start, end = (passes[name].to_numpy("int64") for name in ("ts_ns", "end_ns"))
        span = union(start, end)
        tokens = passes["tokens"].sum(skipna=False)
        rows.append(
            {
                "recording": recording,
                "rank": passes["rank"].iloc[0],
                "stage": stage,
                "passes": len(passes),
                "tokens": tokens,
                "host_ns": int(passes["dur_ns"].sum()),
                "median_ns": float(passes["dur_ns"].median()),
                "median_end_ns": float((passes["end_ns"] - passes["ts_ns"]).median()),
                "span_ns": span.length_ns,
                "busy_share": _share(busy.get(int(recording)), span),
                "device_ns": int(passes["device_ns"].sum()),
                "launches": int(passes["launches"].sum()),
                "kernels": int(passes["kernels"].sum()),
                "kernels_per_pass": float(passes["kernels"].mean()),
                "tokens_per_s": float("nan")
                if pd.isna(tokens)
                else int(tokens) / max(span.length_ns, 1) * 1e9,
            }
        )
    made = pd.DataFrame(rows).astype({"rank": "Int64", "tokens": "Int64"})
    order = made["stage"].map({stage: number for number, stage in enumerate(STAGES)})
    return (
        made.assign(order=order)
        .sort_values(["recording", "order"], ignore_index=True)
        .drop(columns="order")
    )


def _busy(session: Session) -> dict[int, Union]:
    """Time with work on any device of each recording."""
    parts: dict[int, list[Union]] = {}
    for one in activities(session):
        parts.setdefault(one.recording, []).append(one.busy)
    return {recording: merged(found) for recording, found in parts.items()}


def _share(busy: Union | None, span: Union) -> float:
    if busy is None or not span.length_ns:
        return float("nan")
    return float(overlap(busy, span.start_ns, span.end_ns).sum()) / span.length_ns
