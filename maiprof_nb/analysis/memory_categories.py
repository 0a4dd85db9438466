"""What an allocation is for: parameters, gradients, activations and so on, as far as told."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis.active_memory import MemoryDevice, MemoryLog, memory_log
from maiprof_nb.session import Session

CATEGORIES = (
    "parameters",
    "gradients",
    "activations",
    "optimizer state",
    "temporaries",
    "KV cache",
    "unknown",
    "inputs",  # these two only where the profiler says so itself
    "autograd details",
)
_PARAMETERS, _GRADIENTS, _ACTIVATIONS, _OPTIMIZER, _TEMPORARIES, _KV, _UNKNOWN = range(7)

PASSING_CHANGES = 24  # changes of memory within which what is freed again counts as temporary
LASTING_SHARE = 0.1  # of the log's changes that a gradient outlives its backward function

# What a stack says about the code that allocated; the first that matches wins. A frame is
# ``name (file:line)`` in a snapshot and ``file(line): name`` in a trace.
_ORIGINS = (
    ("cache", r"kv_?cache|key_?cache|value_?cache|past_key|cache_utils|\bcache_k\b|update_cache"),
    ("accumulate", r"AccumulateGrad"),
    (
        "backward",
        r"torch::autograd::(?:generated::\w+::apply|Engine|Node)|evaluate_function"
        r"|\bbackward(?: \(|$)",
    ),
    ("optimizer", r"optim\w*[/\\]\w+\.py|optimizers?\.py|\b_init_group\b|Optimizer\.step"),
    (
        "setup",
        r"\b(?:_apply|__init__|load_state_dict|reset_parameters|from_pretrained|\w*build_model"
        r"|\w*load_model|init_\w*weights?)(?: \(|$)",
    ),
    ("forward", r"\b(?:forward|_call_impl|_wrapped_call_impl|__call__)\b|aten::"),
)
_NONE = -1
_SMALL = 64 * 1024  # bytes; sizes below it are met everywhere and pair with anything


def memory_categories(session: Session, device: MemoryDevice | None = None) -> pd.DataFrame:
    """What each allocation of one device is for.

    Parameters
    ----------
    session : Session
        What was recorded.
    device : MemoryDevice, optional
        One of `memory_devices`; the first by default.

    Returns
    -------
    DataFrame
        ``allocation, category, confidence, why``. ``confidence`` (0 to 1) is how sure the
        reading is by its kind, not a measured probability; 0 for ``unknown``.

    Raises
    ------
    NotAnswerableError
        If nothing in the session says anything about memory.

    Notes
    -----
    Neither snapshots nor traces say what a tensor is; only the profiler's memory timeline does.
    Elsewhere it is read from the stack that allocated it, how long it lives, and sizes:
    optimizer state and gradients are as large as the parameters they belong to. What no stack
    tells stays unknown.
    """
    return categories_of(memory_log(session, device))


@remembered
def categories_of(log: MemoryLog) -> pd.DataFrame:
    """As `memory_categories`, of a log already replayed."""
    if log.device.kind == "timeline":
        return _stated(log)
    lives = log.allocations
    origin = _origins(log)
    size = lives["size_bytes"].to_numpy(np.int64)
    changes = max(len(log.ts_ns) - 1, 1)
    span = lives["end_state"].to_numpy(np.int64) - lives["first_state"].to_numpy(np.int64)
    kept = lives["end_ns"].isna().to_numpy(bool)
    old = lives["before_log"].to_numpy(bool)
    lasting = kept | (span >= LASTING_SHARE * changes)
    passing = ~kept & ~old & (span <= PASSING_CHANGES)
    made_in = {name: origin == code for code, (name, _) in enumerate(_ORIGINS)}
    state = made_in["optimizer"] & lasting
    backward = made_in["backward"] | made_in["accumulate"]
    paired = np.isin(size, np.unique(size[state])) & (size > _SMALL)

    rules: list[tuple[npt.NDArray[np.bool_], int, float, str]] = [
        (made_in["cache"], _KV, 0.8, "made in a key-value cache"),
        (made_in["accumulate"], _GRADIENTS, 0.9, "made by AccumulateGrad"),
        (state, _OPTIMIZER, 0.85, "made in the optimizer and kept"),
        (made_in["optimizer"], _TEMPORARIES, 0.8, "made in the optimizer and freed"),
        (backward & passing, _TEMPORARIES, 0.7, "made in the backward pass and freed soon"),
        (backward & paired & lasting, _GRADIENTS, 0.8, "made in the backward pass, as large as "
         "a tensor of the optimizer's state"),
        (backward & lasting, _GRADIENTS, 0.5, "made in the backward pass and kept"),
        (backward, _TEMPORARIES, 0.5, "made in the backward pass and freed"),
        (made_in["setup"] & kept, _PARAMETERS, 0.7, "made while a module was set up, and kept"),
        (passing, _TEMPORARIES, 0.6, "freed within a few changes"),
        (made_in["forward"] & ~old, _ACTIVATIONS, 0.6, "made in the forward pass and kept"),
        (old & kept & paired, _PARAMETERS, 0.6, "older than the log, as large as a tensor of "
         "the optimizer's state"),
        (old & kept & made_in["forward"], _UNKNOWN, 0.0, "older than the log"),
    ]  # fmt: skip
    chosen = np.full(len(lives), len(rules), dtype=np.int64)
    for number, (matches, *_) in reversed(list(enumerate(rules))):
        chosen[matches] = number
    codes = np.array([rule[1] for rule in rules] + [_UNKNOWN])[chosen]
    confidence = np.array([rule[2] for rule in rules] + [0.0])[chosen]
    reasons = [rule[3] for rule in rules] + ["neither stack nor lifetime tells"]
    return pd.DataFrame(
        {
            "allocation": lives["allocation"].to_numpy(),
            "category": pd.Categorical.from_codes(codes, categories=list(CATEGORIES)),
            "confidence": confidence,
            "why": pd.Categorical.from_codes(chosen, categories=_distinct(reasons)),
        }
    )


def _stated(log: MemoryLog) -> pd.DataFrame:
    """The profiler's own categories, which stand in place of the stacks."""
    label = log.stacks.set_index("stack")["label"].astype(object)
    named = log.allocations["stack"].map(label)
    return pd.DataFrame(
        {
            "allocation": log.allocations["allocation"].to_numpy(),
            "category": pd.Categorical(named.tolist(), categories=list(CATEGORIES)),
            "confidence": np.where(named.eq("unknown"), 0.0, 1.0),
            "why": pd.Categorical(["the profiler says so"] * len(named)),
        }
    )


def _origins(log: MemoryLog) -> npt.NDArray[np.int64]:
    """Code of `_ORIGINS` for each allocation; -1 where no stack tells."""
    lives, stacks = log.allocations, log.stacks
    if stacks.empty:
        return np.full(len(lives), _NONE, dtype=np.int64)
    texts = stacks["frames"].astype(object)
    of_stack = np.full(len(stacks), _NONE, dtype=np.int64)
    for code, (_, pattern) in reversed(list(enumerate(_ORIGINS))):
        of_stack[texts.str.contains(re.compile(pattern, re.MULTILINE)).to_numpy(bool)] = code
    known = pd.Series(of_stack, index=stacks["stack"].to_numpy(np.int64))
    found: pd.Series[Any] = lives["stack"].map(known)
    return found.fillna(_NONE).to_numpy(np.int64)


def _distinct(reasons: list[str]) -> list[str]:
    return list(dict.fromkeys(reasons))
