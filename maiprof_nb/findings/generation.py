"""Step 4 of a model that generates text: what prefill and decode take."""

from __future__ import annotations

import math

import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.generation import DECODE, PREFILL, generates
from maiprof_nb.analysis.generation_stages import generation_stages
from maiprof_nb.findings.training_loop import loop_verdict
from maiprof_nb.findings.trust import reservations
from maiprof_nb.findings.verdict import Verdict
from maiprof_nb.session import Session

_MOSTLY_IDLE = 0.5
_GRAPH = 10  # pieces of work a launch, from which on whole graphs are launched
_AS_A_GRAPH = (
    "Launch decode as a CUDA graph: vLLM without enforce_eager, SGLang without "
    "disable_cuda_graph, transformers with a static cache and "
    'torch.compile(mode="reduce-overhead"). Size of the change: 1 setting.'
)
_FEWER = (
    "Launch less: compile the model (torch.compile; vLLM without enforce_eager does it), or take "
    "more prompts into one pass. Size of the change: 1 setting."
)
_BETWEEN = (
    "Look at what the host does between the launches (step 2): scheduling, sampling and copies "
    "of tokens to the host hold up the next pass."
)
_MORE_AT_ONCE = (
    "Decode more requests at a time while memory lasts, or read fewer bytes a token: weights and "
    "KV cache of 8 bits or fewer. Size of the change: 1 or 2 settings."
)


def work_verdict(session: Session) -> Verdict:
    """Say what takes the time: prefill and decode of a model that generates, else the phases.

    Raises
    ------
    NotAnswerableError
        If the recording holds no host events.
    """
    return generation_verdict(session) if generates(session) else loop_verdict(session)


def generation_verdict(session: Session) -> Verdict:
    """Say how long prefill and decode take, and whether the device works meanwhile.

    Raises
    ------
    NotAnswerableError
        If the recording shows no generation.
    """
    found = generation_stages(session)
    mine = found[found["recording"] == found["recording"].iloc[0]]
    of_rank = "" if len(mine) == len(found) else f" of rank {mine['rank'].iloc[0]}"
    longest = mine.sort_values("span_ns", ascending=False).iloc[0]
    said = " ".join(_sentence(row) for _, row in mine.iterrows())
    return Verdict(
        question=f"What do prefill and decode{of_rank} take?",
        figure=said,
        meaning=_meaning(longest),
        attempt=_attempt(longest),
        evidence=found,
        reservations=reservations(session, "gpu-utilisation", "phases"),
    )


def _sentence(row: pd.Series) -> str:
    passes = int(row["passes"])
    many = "pass takes" if passes == 1 else "passes take"
    said = f"{units.count(passes)} {row['stage']} {many} {units.duration(row['median_ns'])}"
    said += " of the host" if passes == 1 else " of the host each at the median"
    if row["kernels"]:
        said += f", {units.duration(row['median_end_ns'])} to the end of the device work"
    if not pd.isna(row["tokens"]) and row["tokens"]:
        said += (
            f"; {units.count(row['tokens'])} tokens, {units.count(row['tokens_per_s'])} a second"
        )
    if not math.isnan(row["busy_share"]):
        said += f"; the GPU is busy {units.percent(row['busy_share'])} of it"
    return f"{said}."


def _meaning(row: pd.Series) -> str:
    stage = row["stage"]
    said = [f"Most of the time of the passes goes to {stage}."]
    if math.isnan(row["busy_share"]):
        said.append("Without device work in the recording, whether the GPU waits cannot be told.")
    elif row["busy_share"] < _MOSTLY_IDLE:
        said.append(
            f"The GPU is idle for most of it and waits for the host, which makes "
            f"{_launches(row)} for "
            f"{units.count(row['kernels_per_pass'])} pieces of device work a pass."
        )
    elif stage == PREFILL:
        said.append(
            "Prefill works through all tokens of a prompt at once: its matrix products are wide, "
            "and the roofline of step 3 says how near they come to what the GPU can do."
        )
    else:
        said.append(
            "A decoding pass reads every weight to make one token a request: with few requests "
            "at a time the memory's bandwidth bounds it, not the arithmetic."
        )
    said.append("Times are as profiled: compare only with other profiled runs.")
    return " ".join(said)


def _launches(row: pd.Series) -> str:
    count = round(row["launches"] / row["passes"])
    return f"{units.count(count)} launch{'es' if count != 1 else ''}"


def _attempt(row: pd.Series) -> str:
    if math.isnan(row["busy_share"]):
        return ""
    if row["busy_share"] >= _MOSTLY_IDLE:
        return _MORE_AT_ONCE if row["stage"] == DECODE else ""
    graphs = row["kernels"] >= _GRAPH * max(row["launches"], 1)
    if graphs:
        return _BETWEEN
    return _FEWER if row["stage"] == PREFILL else _AS_A_GRAPH
