"""What samplers measured and what the trace says of it, side by side."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import maiprof_nb
from maiprof_nb.session import Session
from maiprof_nb.timebase import NS_PER_S, TimeWindow
from maiprof_widgets import LinkState, MetricFiguresView, MetricsView, Overview, TensorCoresView
from maiprof_widgets.views.metrics import BINS
from tests import tiny_traces as tiny
from tests.made_tensor_jobs import PLAIN, TENSOR, job

MEMORY = ["made", "peak", "segments", "growth"]


@pytest.fixture(scope="module")
def before(samples: Path) -> Session:
    return maiprof_nb.load(samples / "case_study" / "before")


def titles(view: MetricsView) -> list[str]:
    notes = [note for note in view.figure.layout.annotations if note.name.startswith("title")]
    return [note.text.split("</b>")[0].removeprefix("<b>") for note in notes]


def curve(view: MetricsView, title: str) -> np.ndarray:
    number = titles(view).index(title) + 1
    axis = "y" if number == 1 else f"y{number}"
    return next(trace for trace in view.figure.data if trace.yaxis == axis).y


def test_estimates_stand_beneath_what_was_measured(before: Session) -> None:
    found = titles(MetricsView(before, LinkState()))
    for measured, estimate in (
        ("SM activity (DCGM)", "est. SM efficiency (from the trace)"),
        ("SM occupancy (DCGM)", "est. achieved occupancy (from the trace)"),
        ("Tensor Core activity (DCGM)", "Tensor Core kernels by name (from the trace)"),
    ):
        at = [number for number, title in enumerate(found) if title.startswith(measured)]
        assert len(at) == 1
        assert found[at[0] + 1].startswith(estimate)


def test_they_follow_the_window_in_bins_of_its_pixels(tmp_path: Path) -> None:
    """Kernels with half a block per SM run for the first 5 of 10 s."""
    link = LinkState()
    view = MetricsView(job(tmp_path, TENSOR, 0.2), link)
    title = "est. SM efficiency (from the trace)"
    assert curve(view, title).mean() == pytest.approx(25, abs=0.5)
    link.window = TimeWindow(NS_PER_S, 2 * NS_PER_S)
    assert curve(view, title).tolist() == pytest.approx([50] * BINS)
    by_name = "Tensor Core kernels by name (from the trace): share of time in them"
    assert curve(view, by_name).tolist() == [100] * BINS
    link.window = TimeWindow(7 * NS_PER_S, 8 * NS_PER_S)
    assert set(curve(view, title)) == {0}
    assert view.status.value == ""


def test_a_trace_alone_shows_its_own_and_what_sampling_adds(tmp_path: Path) -> None:
    view = MetricsView(job(tmp_path, PLAIN, None), LinkState())
    assert len(titles(view)) == 3
    assert all("(from the trace)" in title for title in titles(view))
    assert "nvidia-smi" in view.children[-2].value
    assert "maiprof-missing" in view.children[-2].value


def test_the_dashboard_folds_what_the_trace_says(tmp_path: Path) -> None:
    folded = Overview(job(tmp_path, PLAIN, None)).folds["metrics"]
    assert folded is not None
    assert "from the trace" in folded.button.description
    folded.button.value = True
    assert isinstance(folded.children[1], MetricsView)
    assert Overview(tiny.session(tiny.operator("aten::mm", 1000, 5))).folds.get("metrics") is None


def test_with_neither_there_is_a_sentence() -> None:
    view = MetricsView(tiny.session(tiny.operator("aten::mm", 1000, 5)), LinkState())
    assert len(view.children) == 1
    assert "No GPU metrics and no device kernels" in view.status.value


def test_many_devices_share_the_points() -> None:
    session = tiny.session(*(tiny.kernel(1000, 50, device=number) for number in range(32)))
    view = MetricsView(session, LinkState())
    points = sum(len(trace.x) for trace in view.figure.data)
    assert points <= 2 * 8 * BINS  # two curves a device, as of eight devices


# --- tensor cores ---------------------------------------------------------------------------


def test_names_and_measurement_in_one_row(tmp_path: Path) -> None:
    text = TensorCoresView(job(tmp_path, TENSOR, 0.2)).children[0].value
    for cell in ("GPU 0", "5.00 s", "100.0 %", "0.0 %", "20.0 %"):
        assert f"<td>{cell}</td>" in text
    assert "was measured" not in text


@pytest.mark.parametrize(
    ("name", "activity", "words"),
    [(TENSOR, 0.001, "wait for something else"), (PLAIN, 0.2, "go by other names")],
)
def test_a_contradiction_is_a_sentence(
    tmp_path: Path, name: str, activity: float, words: str
) -> None:
    text = TensorCoresView(job(tmp_path, name, activity)).children[0].value
    assert words in text
    assert f"{activity * 100:.1f} % activity was measured" in text


def test_nothing_measured_says_what_to_sample(tmp_path: Path) -> None:
    text = TensorCoresView(job(tmp_path, PLAIN, None)).children[0].value
    assert "<td>not measured</td>" in text
    assert "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE" in text


def test_without_device_work_there_is_a_sentence() -> None:
    view = TensorCoresView(tiny.session(tiny.operator("aten::mm", 1000, 5)))
    assert len(view.children) == 1
    assert "maiprof-missing" in view.status.value


# --- figures of the window ------------------------------------------------------------------


@pytest.fixture
def power(tmp_path: Path) -> Session:
    """0, 10, ... 90 W at seconds 0 to 9."""
    log = tmp_path / "gpu.csv"
    head = "timestamp, index, power.draw [W]\n"
    rows = [f"2026/03/02 09:00:0{i}.000, 0, {10 * i}.00 W\n" for i in range(10)]
    log.write_text(head + "".join(rows))
    return maiprof_nb.load(log)


def test_figures_are_those_of_the_window_shown(power: Session) -> None:
    """Of 0 to 90: median 45, 95 % of the way 85.5. Of 20, 30, 40: 30, 39 and 40."""
    link = LinkState()
    view = MetricFiguresView(power, link)
    columns = ["median", "p95", "maximum"]
    assert view.found[columns].to_numpy().tolist() == [[45, pytest.approx(85.5), 90]]
    assert "the whole recording" in view.table.value
    link.window = TimeWindow(2 * NS_PER_S, 4 * NS_PER_S)
    assert view.found[columns].to_numpy().tolist() == [[30, pytest.approx(39), 40]]
    assert "the window shown, 2.00 s to 4.00 s" in view.table.value
    assert "<td>39.00</td>" in view.table.value


def test_a_window_without_samples_says_so_and_recovers(power: Session) -> None:
    link = LinkState()
    view = MetricFiguresView(power, link)
    link.window = TimeWindow(2 * NS_PER_S + 1, 2 * NS_PER_S + 5)
    assert "Nothing was sampled in the window shown" in view.status.value
    assert view.table.value == ""
    link.window = None
    assert view.status.value == ""
    assert "90.00" in view.table.value


def test_known_quantities_come_first_in_their_own_unit(before: Session) -> None:
    found = MetricFiguresView(before, LinkState()).found
    assert found["quantity"].iloc[0] == "gpu utilisation"
    assert found["quantity"].iloc[-1] == ""
    occupancy = found[found["quantity"] == "sm occupancy"]
    assert occupancy["unit"].tolist() == ["%"]
    assert 1 < occupancy["maximum"].iloc[0] <= 100


def test_names_from_a_log_stay_text(tmp_path: Path) -> None:
    log = tmp_path / "dcgm.prom"
    log.write_text(
        '# TYPE DCGM_FI_DEV_X gauge\nDCGM_FI_DEV_X{gpu="<img>",Hostname="h"} 1 1700000000000\n'
    )
    assert "<img" not in MetricFiguresView(maiprof_nb.load(log), LinkState()).table.value


def test_without_metrics_there_is_a_sentence() -> None:
    view = MetricFiguresView(tiny.session(tiny.kernel(1000, 5)), LinkState())
    assert "nvidia-smi" in view.status.value


# --- the dashboard --------------------------------------------------------------------------


def test_folds_stand_in_the_order_of_the_steps_and_open_without_an_error(before: Session) -> None:
    overview = Overview(before)
    steps, memory = list(overview.folds)[:5], list(overview.folds)[5:]
    assert steps == ["idle", "metrics", "roofline", "loop", "launches"]
    assert memory == [*MEMORY, "clocks"]
    titles = [overview.folds[step].button.description for step in steps]
    assert [title.split(" ")[2][0] for title in titles] == ["2", "3", "3", "4", "4"]
    for fold in overview.folds.values():
        assert len(fold.children) == 1  # nothing is made before
        fold.button.value = True
        for view in fold.children[1:]:
            assert "maiprof-status" not in getattr(getattr(view, "status", None), "value", "")
    overview.show(before)
    opened = [key for key, fold in overview.folds.items() if fold.button.value]
    assert opened == list(overview.folds)  # what was open stays open


def test_a_snapshot_alone_has_no_steps_to_fold(samples: Path) -> None:
    overview = Overview(maiprof_nb.load(samples / "leak" / "memory.pickle.gz"))
    assert list(overview.folds) == [*MEMORY, "clocks"]
