"""Epochs from the functions and iterators of a loop of two steps an epoch."""

from __future__ import annotations

import pytest

from maiprof_nb.analysis.epochs import epoch_starts, epochs_between
from tests.shipped_samples import loaded, truth
from tests.tiny_traces import Event, python, session

ITERATOR = "torch/utils/data/dataloader.py(492): __iter__"
STARTS = [0, 200, 400, 600]  # ns after the first event, which is the session's start


def functions(name: str, dur: float) -> list[Event]:
    return [python(name, 1000 + start / 1000, dur) for start in STARTS]


def found(*events: Event) -> list[int]:
    return epoch_starts(session(*events))["ts_ns"].tolist()


def test_the_function_that_takes_most_time_is_the_epoch() -> None:
    epochs = functions("train.py(4): train_one_epoch", 0.15)
    hooks = [python("train.py(9): on_epoch_end", 1000.05 + i / 100, 0.001) for i in range(9)]
    iterators = functions(ITERATOR, 0.01) + functions(ITERATOR, 0.02)  # training, validation
    assert found(*epochs, *hooks, *iterators) == STARTS


def test_the_epoch_that_was_cut_at_the_start_is_one_of_them() -> None:
    """As torch.profiler 2.13 names them: the first by the line it had reached."""
    cut, *whole = functions("train.py(7): train_epoch", 0.19)
    later = [event | {"name": "train.py(5): train_epoch"} for event in whole]
    assert found(cut, *later) == STARTS


def test_without_one_the_iterators_are_counted() -> None:
    many = python("train.py(2): train_epochs", 1000, 1)
    other = python("torch/utils/data/sampler.py(343): __iter__", 1000, 0.005)
    assert found(many, other, *functions(ITERATOR, 0.01)) == STARTS


def test_without_either_nothing_is_known() -> None:
    trace = session(python("train.py(2): train", 1000, 1))
    assert epoch_starts(trace).empty
    assert epochs_between(trace, 0, [0, 500]) is None


@pytest.mark.parametrize(
    ("moments", "expected"),
    [
        ([0, 400], 2),  # the epoch that begins at the last moment is not over
        ([200, 400, 600], 1),
        ([10, 20], None),
        ([200], None),
    ],
)
def test_epochs_from_one_moment_to_the_next(moments: list[int], expected: int | None) -> None:
    trace = session(*functions("train.py(4): epoch", 0.15))
    assert epochs_between(trace, 0, moments) == expected


@pytest.mark.xdist_group("simulated samples")
@pytest.mark.parametrize("name", ["before", "batch"])
def test_epochs_of_the_sample(name: str) -> None:
    known = truth(name)
    starts = epoch_starts(loaded(name))
    steps = known["settings"]["steps_per_epoch"]
    assert len(starts) == len(known["steps"]) / steps
    assert set(starts["name"]) == {"recommender/train.py(42): train_epoch"}
