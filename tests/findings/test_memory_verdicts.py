"""The verdicts of the memory guide: on the simulated samples, whose truth is known, and by hand."""

from __future__ import annotations

import pytest

from maiprof_nb import NotAnswerableError
from maiprof_nb.findings import (
    memory_fit_verdict,
    memory_fragmentation_verdict,
    memory_leak_verdict,
    memory_sawtooth_verdict,
    memory_shape_verdict,
)
from tests import tiny_traces as tiny
from tests.findings.tiny_memory import GIB, Job
from tests.shipped_samples import loaded

EVERY = (
    memory_shape_verdict,
    memory_sawtooth_verdict,
    memory_leak_verdict,
    memory_fragmentation_verdict,
    memory_fit_verdict,
)
together = pytest.mark.xdist_group("simulated samples")


@together
def test_the_shape_of_the_curve_by_the_simulated_truth():
    """192 MiB a step stay behind in `leak` only (truth/leak.json); its line is named."""
    rising = memory_shape_verdict(loaded("leak"))
    assert rising.figure.startswith("Rising. The floor rises by 192 MiB a step")
    assert "recommender/model.py:47" in rising.figure
    assert "at the end 1.81 GiB" in rising.meaning  # and torn into holes
    assert "loss.item()" in rising.attempt
    healthy = memory_shape_verdict(loaded("before"))
    assert healthy.figure.startswith("A sawtooth. 47 teeth")
    assert healthy.attempt == ""


@together
@pytest.mark.parametrize("ask", EVERY, ids=lambda ask: ask.__name__)
def test_every_verdict_has_figure_and_meaning_or_says_what_to_record(ask):
    for name in ("leak", "before"):
        verdict = ask(loaded(name))
        assert verdict.figure.endswith(".")
        assert verdict.meaning
        assert not verdict.figure.startswith("It cannot be told")
    with pytest.raises(NotAnswerableError, match="no memory of a device") as error:
        ask(tiny.session(tiny.operator("aten::mm", 1000, 10)))
    assert "_record_memory_history" in error.value.remedy


def test_memory_that_cannot_be_judged_says_why():
    """One moment: no cycles, so neither sawtooth nor leak; every byte reserved is live."""
    job = Job()
    job.before(GIB)
    session = job.session()
    for ask in (memory_sawtooth_verdict, memory_leak_verdict):
        assert ask(session).figure.startswith("It cannot be told: ")
        assert ask(session).attempt == ""
    assert memory_shape_verdict(session).figure.startswith("Out of memory, or nearly. ")
    assert "halve the batch" in memory_fit_verdict(session).attempt
    assert memory_fragmentation_verdict(session).attempt == ""
