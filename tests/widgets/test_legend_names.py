"""Names of the memory view's legend: short, and never two alike."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest

from maiprof_nb.analysis.active_memory import MemoryLog
from maiprof_widgets.views._memory_words import names

FORWARD, MAIN = "forward (/job/model.py:47)", "main (/job/train.py:9)"
TEST = "test (/job/train.py:20)"
LINEAR, DROPOUT = "forward (/torch/nn/linear.py:125)", "forward (/torch/nn/dropout.py:70)"


def log_of(*stacks: tuple[str, list[str]]) -> MemoryLog:
    """A log with nothing but stacks: label, and frames from the inside."""
    frame = pd.DataFrame(
        {
            "stack": range(len(stacks)),
            "label": [label for label, _ in stacks],
            "frames": ["\n".join(frames) for _, frames in stacks],
        }
    )
    return cast("MemoryLog", SimpleNamespace(stacks=frame))


@pytest.mark.parametrize(
    ("frames", "right"),
    [
        ([[FORWARD, MAIN]], ["forward (model.py:47)"]),
        (
            [[FORWARD, MAIN], [FORWARD, TEST]],
            [
                "forward (model.py:47) < main (train.py:9)",
                "forward (model.py:47) < test (train.py:20)",
            ],
        ),
        (
            [[LINEAR, FORWARD, MAIN], [DROPOUT, FORWARD, MAIN]],
            [
                "forward (model.py:47) > forward (linear.py:125)",
                "forward (model.py:47) > forward (dropout.py:70)",
            ],
        ),
        (  # three, of which two part at a frame where the third already has
            [[LINEAR, FORWARD, MAIN], [DROPOUT, FORWARD, MAIN], [FORWARD, TEST]],
            [
                "forward (model.py:47) < main (train.py:9) > forward (linear.py:125)",
                "forward (model.py:47) < main (train.py:9) > forward (dropout.py:70)",
                "forward (model.py:47) < test (train.py:20)",
            ],
        ),
        ([[FORWARD], [FORWARD]], ["forward (model.py:47)", "forward (model.py:47) (2)"]),
    ],
)
def test_names_are_as_long_as_they_must_be_to_differ(
    frames: list[list[str]], right: list[str]
) -> None:
    log = log_of(*((FORWARD, chain) for chain in frames))
    assert names(log, list(range(len(frames)))) == right


def test_a_stack_that_was_not_recorded_says_so() -> None:
    log: Any = log_of((FORWARD, [FORWARD]))
    assert names(log, [-1, 0]) == ["no stack recorded", "forward (model.py:47)"]
