"""Every rule is found in a recording that shows it, and passes a healthy one.

What a fault costs is known beforehand where the simulated job has it on purpose: the right values
are the simulator's own schedule, never read back from its files.
"""

from __future__ import annotations

import statistics
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import maiprof_nb
from maiprof_nb import Session, units
from maiprof_nb.analysis.gap_causes import idle_by_cause
from maiprof_nb.collection.simulation.metrics_text import SAMPLE_NS
from maiprof_nb.findings.rules import RULES
from tests.conftest import CORPUS
from tests.findings.asking import finding
from tests.shipped_samples import FOLDERS, loaded, truth
from tests.simulated_jobs import job

pytestmark = pytest.mark.xdist_group("simulated samples")

Truth = dict[str, Any]
ROOT = Path(__file__).parents[2]
SHOWN_BY = tomllib.loads((ROOT / "docs" / "shown_by.toml").read_text(encoding="utf-8"))
ASKED = [
    (rule, outcome, SHOWN_BY[rule][outcome]) for rule in SHOWN_BY for outcome in SHOWN_BY[rule]
]


@cache
def public(pattern: str) -> Session:
    if not CORPUS.is_dir():
        pytest.skip(f"no corpus at {CORPUS}: set MAIPROF_CORPUS")
    (path,) = CORPUS.glob(pattern)
    return maiprof_nb.load(path)


def recording(name: str) -> Session | None:
    """The recording of a name in the table; None where a test of its own makes it."""
    kind, _, rest = name.partition(":")
    if kind == "live":
        assert (Path(__file__).parent / "rules" / f"test_{rest}_live.py").is_file()
        return None
    of_kind = {"sample": loaded, "simulated": lambda name: job(name).session, "public": public}
    return of_kind[kind](rest)


def test_every_rule_is_in_the_table() -> None:
    assert set(SHOWN_BY) == {rule.id for rule in RULES}
    assert {kind for _, kind, _ in ASKED} == {"shown", "passed"}


@pytest.mark.parametrize(("rule", "outcome", "name"), ASKED, ids=map("-".join, ASKED))
def test_shown_and_passed(rule: str, outcome: str, name: str) -> None:
    session = recording(name)
    if session is not None:
        said = finding(session, rule)
        assert said.outcome == {"shown": "found", "passed": "passed"}[outcome], said.title
        assert said.title


def of_gaps(known: Truth, *causes: str) -> int:
    """Time that these held in gaps of 0.1 ms and more."""
    listed = known["gaps"]["from_100_us"]
    return sum(gap["shares_ns"].get(cause, 0) for gap in listed for cause in causes)


def input_ns(known: Truth) -> int:
    return of_gaps(known, "input/rows", "input/sub-dataset")


def reads_ns(known: Truth) -> int:
    return of_gaps(known, "input/sub-dataset")


def slow_steps_ns(known: Truth) -> int:
    """How much longer the steps that read a sub-dataset last than the median step."""
    steps = {row["step"]: row["end_ns"] - row["start_ns"] for row in known["steps"]}
    median = statistics.median(steps.values())
    return round(sum(steps[read] - median for read in known["sub_dataset_reads"]))


def optimizer_ns(known: Truth) -> int:
    return sum(known["phases"]["optimizer"]["host_ns_per_step"])


COSTS_BEFORE: dict[str, Callable[[Truth], int]] = {
    "input-bound": input_ns,
    "periodic-reload": reads_ns,
    "few-data-workers": lambda known: input_ns(known) - reads_ns(known),
    "slow-step": slow_steps_ns,
    "single-tensor-optimizer": optimizer_ns,
}
# Device work whose names hold a word, and how much of it is for nothing.
COSTS_OF_WORK = {
    "no-tensor-cores": ("sent thrice", "sgemm", 1),
    "fp32-matmul": ("sent thrice", "sgemm", 1),
    "pageable-copies": ("sent thrice", "(Pageable ->", 1),
    "redundant-copies": ("sent thrice", "(Pageable ->", 2 / 3),
    "misaligned-dims": ("misaligned", "_align2", 1),
}


@pytest.mark.parametrize("rule", COSTS_BEFORE)
def test_cost_in_the_sample_within_one_per_cent(rule: str) -> None:
    known = COSTS_BEFORE[rule](truth("before"))
    assert finding(loaded("before"), rule).cost_ns == pytest.approx(known, rel=0.01)


@pytest.mark.parametrize("rule", COSTS_OF_WORK)
def test_cost_of_device_work_within_one_per_cent(rule: str) -> None:
    name, word, share = COSTS_OF_WORK[rule]
    known = job(name).device_ns(word) * share
    assert finding(job(name).session, rule).cost_ns == pytest.approx(known, rel=0.01)


def test_room_for_a_larger_batch_to_the_byte() -> None:
    metrics = truth("before")["metrics"]
    free_mib = 0.95 * metrics["memory_total_mib"] - metrics["peak_memory_used_mib"]
    said = finding(loaded("before"), "memory-headroom")
    assert said.size_bytes == pytest.approx(free_mib * 2**20, rel=1e-6)


def test_leak_to_the_byte() -> None:
    said = finding(loaded("leak"), "memory-leak")
    assert said.evidence[0]["slope_bytes"] == truth("leak")["memory"]["leak_bytes_per_step"]


def test_launches_of_the_small_batch() -> None:
    """All idle time that is not for input is the host between two launches."""
    known = job("small batch")
    idle = idle_by_cause(known.session).set_index("cause")["idle_ns"]
    causes = known.truth["gaps"]["by_cause"]
    host = sum(row["ns"] for cause, row in causes.items() if cause != "input/rows")
    assert idle.drop("input").sum() == pytest.approx(host, rel=0.02)
    said = finding(known.session, "launch-bound")
    assert said.cost_ns == pytest.approx(idle["launch-bound"], rel=0.01)


def test_small_kernels_are_counted() -> None:
    known = job("small batch")
    start, end = known.truth["window_ns"]
    lasting = [a.dur_ns for a in known.run.machine.activities if start <= a.start_ns < end]
    share = units.percent(sum(dur < 10_000 for dur in lasting) / len(lasting))
    title = finding(known.session, "small-kernels").title
    assert title.startswith(f"{share} of {units.count(len(lasting))} pieces of device work")


def test_every_look_at_a_layer_is_a_wait() -> None:
    """One after each of 26 layers, and the four that the job has anyway."""
    known = job("checks")
    said = finding(known.session, "hidden-sync")
    assert said.title.startswith("The host waits for the device 30 times a step")
    assert said.cost_ns >= known.truth["gaps"]["after_wait"]["ns"]


def test_the_clock_that_heat_holds_down() -> None:
    """The same job took so much less time on a cool device; its clock is read twice a second."""
    hot, cool = job("hot"), job("healthy")
    start, end = hot.truth["window_ns"]
    read = [at for at in range(0, end, SAMPLE_NS) if at >= start]
    device = hot.run.machine.device
    held = sum(device.is_hot(at) for at in read) / len(read)
    said = finding(hot.session, "throttling")
    assert f"down in {units.percent(held)} of the samples" in said.title
    assert f"the clock was {units.percent(1 - 900 / 1410)} below its highest" in said.title
    lost = (end - start) - (cool.truth["window_ns"][1] - cool.truth["window_ns"][0])
    assert said.cost_ns == pytest.approx(lost, rel=0.1)


def test_the_samples_are_the_ones_of_the_table() -> None:
    named = {name.removeprefix("sample:") for *_, name in ASKED if name.startswith("sample:")}
    assert named <= set(FOLDERS)
