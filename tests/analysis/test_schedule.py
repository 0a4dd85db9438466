"""Replays of schedules drawn by hand: every new end is counted on the drawing, in us."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maiprof_nb
from maiprof_nb.analysis._host_pieces import FRAMEWORK, PARALLEL, REST, SERIAL
from maiprof_nb.analysis.schedule import (
    TOLERANCE,
    Durations,
    replay,
    replay_error,
    require_faithful,
    schedule,
)
from maiprof_nb.errors import NotAnswerableError
from tests.shipped_samples import SCENARIOS, loaded
from tests.tiny_traces import (
    AUTOGRAD,
    annotation,
    complete,
    kernel,
    launch,
    nccl,
    operator,
    session,
    step,
)


def wait(ts: float, dur: float, *, name: str = "cudaDeviceSynchronize", tid: int = 500) -> dict:
    return complete(name, "cuda_runtime", ts, dur, tid=tid, args={"correlation": 9_000 + int(ts)})


def loading(ts: float, dur: float) -> dict:
    return annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", ts, dur)


def awaited() -> object:
    """The loop waits for a kernel of 40 us; the next step begins with 50 us of loading."""
    return schedule(
        session(
            step(0, 1000, 100), launch(1, 1010), kernel(1020, 40, correlation=1), wait(1020, 45),
            step(1, 1100, 100), loading(1100, 50), launch(2, 1160), kernel(1170, 20, correlation=2),
        )
    )  # fmt: skip


def hidden() -> object:
    """Loading of 80 us beside a kernel of 100 us; the loop waits for the kernel after it."""
    return schedule(
        session(
            step(0, 1000, 130), launch(1, 1010), kernel(1020, 100, correlation=1),
            loading(1020, 80), wait(1100, 25),
        )
    )  # fmt: skip


def without_input(of: object) -> Durations:
    changed = of.durations.copy()
    changed.host_ns[:, [PARALLEL, SERIAL]] = 0
    return changed


def ends_us(found: object) -> list[float]:
    return (found.step_end_ns / 1000).tolist()


def test_nothing_changed():
    found = replay(awaited())
    assert ends_us(found) == [100, 200]
    assert found.window_ns == 200_000


def test_faster_kernel_that_is_waited_for():
    of = awaited()
    changed = of.durations.copy()
    changed.work_ns[0] = 20_000
    assert ends_us(replay(of, changed)) == [80, 180]


def test_kernel_that_nobody_waits_for():
    of = awaited()
    changed = of.durations.copy()
    changed.work_ns[1] = 0  # 1170 to 1190, but the step's mark lasts until 1200
    assert ends_us(replay(of, changed)) == [100, 200]


def test_less_input():
    of = awaited()
    assert of.durations.host_ns[:, PARALLEL].sum() == 50_000
    assert ends_us(replay(of, without_input(of))) == [100, 150]


def test_gains_do_not_add_up():
    """Alone, no input saves nothing and no kernel 22 us; together they save 100.

    Without the kernel the wait, which begins at 1100, takes the 3 us of a wait for nothing;
    without both the host wakes 5 us after the kernel's end at 1020.
    """
    of = hidden()
    assert ends_us(replay(of)) == [130]
    assert ends_us(replay(of, without_input(of))) == [130]
    no_kernel = of.durations.copy()
    no_kernel.work_ns[:] = 0
    assert ends_us(replay(of, no_kernel)) == [108]
    both = without_input(of)
    both.work_ns[:] = 0
    assert ends_us(replay(of, both)) == [30]


def test_removed_wait_leaves_the_step_to_its_device_work():
    of = hidden()
    changed = of.durations.copy()
    changed.waits[:] = False  # the mark ends at 1108, the kernel it launched at 1120
    assert ends_us(replay(of, changed)) == [120]


def test_order_on_a_stream():
    """Two kernels of 50 us launched at once: the second starts 1 us after the first."""
    of = schedule(
        session(
            step(0, 1000, 40), launch(1, 1010), launch(2, 1015),
            kernel(1020, 50, correlation=1), kernel(1071, 50, correlation=2),
        )
    )  # fmt: skip
    changed = of.durations.copy()
    changed.work_ns[0] = 10_000  # ends at 1030, 1 us later the other
    assert ends_us(replay(of, changed)) == [81]


def test_graph_launch_starts_many_kernels():
    of = schedule(
        session(
            step(0, 1000, 40), launch(1, 1010, 5, name="cudaGraphLaunch"),
            *(kernel(1020 + 30 * i, 29, correlation=1) for i in range(4)),
        )
    )  # fmt: skip
    changed = of.durations.copy()
    changed.work_ns[:] = 9_000  # 9 + 1 each, from 1020 on; the last without the 1 us
    assert ends_us(replay(of, changed)) == [59]


def test_stream_that_waits_for_another():
    """The collective ends at 1300; the optimizer's kernel, launched long before, starts then."""
    of = schedule(
        session(
            step(0, 1000, 60), launch(1, 1010), nccl(1020, 280, correlation=1),
            launch(2, 1030), kernel(1302, 20, correlation=2),
        )
    )  # fmt: skip
    changed = of.durations.copy()
    changed.work_ns[0] = 100_000  # ends at 1120, 2 us later the kernel of 20 us
    assert ends_us(replay(of, changed)) == [142]


def test_work_of_the_autograd_thread_is_awaited():
    """Between two launches of the loop's thread another launches two kernels, 20 us apart."""
    of = schedule(
        session(
            step(0, 1000, 140), launch(1, 1010), kernel(1020, 5, correlation=1),
            operator("aten::mm", 1040, 40, tid=AUTOGRAD),
            launch(2, 1045, tid=AUTOGRAD), kernel(1055, 5, correlation=2),
            launch(3, 1065, tid=AUTOGRAD), kernel(1075, 5, correlation=3),
            launch(4, 1100), kernel(1110, 5, correlation=4),
        )
    )  # fmt: skip
    assert ends_us(replay(of)) == [140]
    changed = of.durations.copy()
    point = of.work.launch[2]
    assert changed.host_ns[point, FRAMEWORK] == 20_000
    changed.host_ns[point] = 0
    assert ends_us(replay(of, changed)) == [120]


def test_blocking_copy_waits_for_itself():
    copy = kernel(1020, 60, name="Memcpy HtoD", category="gpu_memcpy", correlation=1)
    of = schedule(session(step(0, 1000, 110), launch(1, 1010, 75, name="cudaMemcpy"), copy))
    changed = of.durations.copy()
    changed.work_ns[:] = 20_000
    assert ends_us(replay(of, changed)) == [70]


def test_window_without_steps_ends_with_its_work():
    of = schedule(
        session(
            launch(1, 1000), kernel(1010, 50, correlation=1),
            launch(2, 1020), kernel(1061, 50, correlation=2),
        )
    )  # fmt: skip
    assert replay(of).window_ns == 101_000  # 1010 to 1111
    assert replay_error(of) == 0


def test_wait_for_something_unrecorded_is_refused():
    """A wait of 500 us that no recorded work ends near."""
    of = schedule(
        session(
            step(0, 1000, 600), launch(1, 1010), kernel(1020, 10, correlation=1),
            wait(1050, 500, name="cudaStreamSynchronize"),
        )
    )  # fmt: skip
    assert replay_error(of) > TOLERANCE
    with pytest.raises(NotAnswerableError, match="misses the recorded step ends"):
        require_faithful(of)


def test_work_without_launches_is_refused():
    of = schedule(
        session(
            step(0, 1000, 100), launch(1, 1010), kernel(1020, 10, correlation=1), kernel(1040, 50)
        )
    )  # fmt: skip
    with pytest.raises(NotAnswerableError, match="has no recorded launch"):
        require_faithful(of)


def test_no_device_work():
    with pytest.raises(NotAnswerableError, match="no device work"):
        schedule(session(step(0, 1000, 100), operator("aten::mm", 1010, 5)))


@pytest.mark.xdist_group("simulated samples")
@pytest.mark.parametrize("name", SCENARIOS)
def test_samples_are_reproduced(name):
    """Step ends of the simulated samples, to 0.01 % of the window."""
    of = schedule(loaded(name))
    assert require_faithful(of) < 1e-4
    off = np.abs(replay(of).step_end_ns - of.steps["end_ns"].to_numpy())
    assert off.max() < 1e-4 * replay(of).window_ns


@pytest.mark.parametrize(
    "pattern",
    [
        "kineto-resnet50-workers/num_workers_0.*",
        "kineto-resnet50-workers/num_workers_4.*",
        "hta-df-index-resolver/*.json.gz",
        "hta-nccl-args/*.json.gz",
        "hta-trace-diff/control.json.gz",
        "tracelens-bert-small-h100/*.json.gz",
        "torchrec-sleep-straggler-4ranks/*19490*",
    ],
)
def test_real_traces_are_reproduced(pattern, corpus):
    """Within 1 %, from the recorded order and the durations alone."""
    (path,) = (corpus / "kineto").glob(pattern)
    assert require_faithful(schedule(maiprof_nb.load(path))) < 0.01


def test_real_trace_with_unrecorded_launches_is_refused(corpus):
    """546 kernels of this file have no launch, and many share a correlation."""
    with pytest.raises(NotAnswerableError):
        require_faithful(schedule(maiprof_nb.load(corpus / "kineto/hta-trace-diff/test.json.gz")))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_less_of_anything_never_takes_longer(seed, kept):
    """Shares of host time, device time and gaps are taken away, and some waits; then more."""
    of = schedule(loaded("optimizer"))
    random = np.random.default_rng(seed)
    less = _less(of.durations, random, kept)
    even_less = _less(less, random, kept)
    windows = [replay(of, one).window_ns for one in (of.durations, less, even_less)]
    assert windows[0] >= windows[1] - 1 >= windows[2] - 2  # sums of floats round


def _less(durations: Durations, random: np.random.Generator, kept: float) -> Durations:
    made = durations.copy()
    made.host_ns[:] *= np.where(random.random(made.host_ns.shape) < kept, 1, random.random())
    made.work_ns[:] *= np.where(random.random(len(made.work_ns)) < kept, 1, random.random())
    made.waits[:] &= random.random(len(made.waits)) < max(kept, 0.5)
    return made


def test_rest_of_the_host_is_its_own_piece():
    """Before the first launch 10 us outside any call; the call of 2 us is the framework's."""
    of = awaited()
    launched = of.work.launch[0]
    assert of.durations.host_ns[launched, REST] == 10_000
    assert of.durations.host_ns[launched + 1, FRAMEWORK] == 2_000
