"""The views' Python halves, without a browser."""

from __future__ import annotations

import json
import re
from pathlib import Path

import ipywidgets
import pytest

import maiprof_nb
from maiprof_nb.analysis import operator_ranking
from maiprof_nb.errors import LoadError, MaiprofError, NotAnswerableError, UsageError
from maiprof_nb.findings import utilisation_verdict
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets import (
    LinkState,
    MetricsView,
    Overview,
    PageView,
    PhasesView,
    RankingView,
    Selection,
    StartPage,
    UtilisationView,
    VerdictView,
    escaping,
)
from maiprof_widgets.dashboards import opening
from maiprof_widgets.views.curves import CurvesView
from maiprof_widgets.views.header import HeaderView
from maiprof_widgets.views.sources import SourcesView
from maiprof_widgets.views.status import StatusLine
from maiprof_widgets.views.upload import UploadView
from tests.shipped_samples import loaded

EVIL = '<img src=x onerror="broken=1">\x1b[31m'


@pytest.fixture(scope="module")
def before(samples: Path) -> Session:
    return maiprof_nb.load(samples / "case_study" / "before")


@pytest.fixture
def link() -> LinkState:
    return LinkState()


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """A trace of one operator and one step, with names that must stay text."""
    complete = {"ph": "X", "pid": 1, "tid": 1}
    events = [
        {**complete, "cat": "user_annotation", "name": "ProfilerStep#1", "ts": 0, "dur": 50},
        {**complete, "cat": "cpu_op", "name": EVIL, "ts": 10, "dur": 20, "args": {}},
    ]
    header = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": EVIL}]}
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({**header, "traceEvents": events}))
    return path


# --- link ---------------------------------------------------------------------------------


def test_an_equal_window_is_no_change(link: LinkState) -> None:
    heard = []
    link.observe(heard.append, "window")
    link.window = TimeWindow(0, 5)
    link.window = TimeWindow(0, 5)
    assert len(heard) == 1


def test_a_row_of_one_recording_is_not_that_of_another() -> None:
    assert Selection("allocations", row=1, recording=0) != Selection(
        "allocations", row=1, recording=1
    )


# --- curves -------------------------------------------------------------------------------


def test_a_zoom_of_the_plot_sets_the_link(before: Session, link: LinkState) -> None:
    view = UtilisationView(before, link)
    view.figure.layout.xaxis.range = (10.0, 20.0)  # seconds, as plotly reports a drag
    assert link.window == TimeWindow(10_000_000_000, 20_000_000_000)
    view.figure.layout.xaxis.range = (0.0, before.span.dur_ns / 1e9)
    assert link.window is None


def test_a_zoom_still_arrives_after_the_page_turned_dark(before: Session, link: LinkState) -> None:
    """A new layout object would forget who listens to its range."""
    view = UtilisationView(before, link)
    link.dark = True
    assert view.figure.layout.font.color == "#e6e9ed"
    view.figure.layout.xaxis.range = (10.0, 20.0)
    assert link.window == TimeWindow(10_000_000_000, 20_000_000_000)


def test_the_plot_follows_the_link_in_finer_bins(before: Session, link: LinkState) -> None:
    view = UtilisationView(before, link)
    link.window = TimeWindow(10_000_000_000, 11_000_000_000)
    assert view.figure.layout.xaxis.range == (10.0, 11.0)
    busy = view.figure.data[0]
    assert 10.0 <= busy.x[0] < busy.x[-1] < 11.0
    assert len(busy.x) == 1200
    assert view.status.value == ""


def test_a_chosen_operator_is_marked_and_named(before: Session, link: LinkState) -> None:
    view = UtilisationView(before, link)
    marks = next(trace for trace in view.figure.data if trace.name == "marks")
    assert len(marks.x) == 0
    link.selection = Selection("operators", name="Optimizer.step#AdamW.step")
    assert len(marks.x) == 3 * 48  # 48 steps, by the sample's README
    titles = [note.text for note in view.figure.layout.annotations]
    assert any("calls of Optimizer.step#AdamW.step" in text for text in titles)
    link.selection = None
    assert len(marks.x) == 0


def test_the_widget_of_every_plot_offers_no_upload(before: Session, link: LinkState) -> None:
    for view in (
        UtilisationView(before, link),
        MetricsView(before, link),
        PhasesView(before, link),
    ):
        assert view.figure._config["showSendToCloud"] is False


def test_payload_of_a_zoom_is_bounded(before: Session, link: LinkState) -> None:
    view = UtilisationView(before, link)
    points = sum(len(trace.x) for trace in view.figure.data)
    # 1200 bins a curve of the trace, at most two samples a bin measured, 3 points a step or mark
    assert points <= 3 * 1200 + 2 * 1202 + 3 * 2000 + 3 * 2001


def test_measured_cpu_utilisation_stands_above_what_the_trace_tells(
    link: LinkState, alone: Path, tmp_path: Path
) -> None:
    log = tmp_path / "host.csv"
    log.write_text("elapsed_s,cpu_percent\n0,10\n1,30\n2,50\n")
    view = UtilisationView(maiprof_nb.load(log), link)
    titles = [note.text for note in view.figure.layout.annotations]
    assert any("CPU utilisation as measured" in text for text in titles)
    assert not any("threads at work" in text for text in titles)  # no trace, so no empty panel
    assert view.figure.data[0].y.tolist() == [10.0, 30.0, 50.0]
    both = maiprof_nb.load([alone, log]).placed({"host.csv": 0})
    view = UtilisationView(both, LinkState())
    titles = [note.text for note in view.figure.layout.annotations]
    assert any("CPU utilisation as measured" in text for text in titles)
    assert any("threads at work" in text for text in titles)
    view.link.selection = Selection("operators", name=EVIL)
    titles = [note.text for note in view.figure.layout.annotations]
    assert any(
        "calls of &lt;img" in text for text in titles
    )  # the last panel's title, not another's


# --- ranking ------------------------------------------------------------------------------


def test_the_table_is_the_ranking(before: Session, link: LinkState) -> None:
    view = RankingView(before, link)
    ranking = operator_ranking(before)
    assert view.ranking["name"].tolist() == ranking["name"].tolist()
    assert view.table.df["Calls"].tolist() == ranking["calls"].tolist()
    assert view.table.df["Self (ms)"].sum() == pytest.approx(
        ranking["self_ns"].sum() / 1e6, rel=1e-6
    )


def test_a_row_sets_the_selection_and_says_its_figures(before: Session, link: LinkState) -> None:
    view = RankingView(before, link)
    row = view.ranking["name"].tolist().index("Optimizer.step#AdamW.step")
    view.table.selected_rows = [row]
    assert link.selection == Selection("operators", name="Optimizer.step#AdamW.step")
    assert "48 calls" in view.chosen.value
    view.table.selected_rows = []
    assert link.selection is None
    assert view.chosen.value == ""


def test_a_window_ranks_what_overlaps_it_and_keeps_the_choice(
    before: Session, link: LinkState
) -> None:
    view = RankingView(before, link)
    link.selection = Selection("operators", name="Optimizer.step#AdamW.step")
    steps = before.table("steps").sort_values("ts_ns")
    first = steps.iloc[0]
    link.window = TimeWindow(int(first["ts_ns"]), int(first["ts_ns"] + first["dur_ns"]))
    view.refresh()  # it waits for a quiet moment where a loop runs
    assert "in the window shown" in view.caption.value
    chosen = view.table.selected_rows
    assert view.ranking["name"].iloc[chosen].tolist() == ["Optimizer.step#AdamW.step"]
    assert "1 calls" in view.chosen.value or "1 call," in view.chosen.value


def test_by_shapes_has_a_row_for_each(before: Session, link: LinkState) -> None:
    view = RankingView(before, link)
    count = len(view.ranking)
    view.by.value = "shapes"
    assert len(view.ranking) > count
    assert "Input shapes" in view.table.df


def test_an_empty_window_says_so_without_alarm(before: Session, link: LinkState) -> None:
    view = RankingView(before, link)
    link.window = TimeWindow(0, 1)
    view.refresh()
    assert "No operator ran in this window" in view.status.value
    assert "maiprof-missing" in view.status.value


# --- header, sources, verdict, status -----------------------------------------------------


def test_header_names_what_is_open_and_that_it_is_simulated(before: Session) -> None:
    text = HeaderView(before).value
    assert "case_study/before" in text
    assert "SIMULATED" in text
    assert "34.0 %" in text  # 66.0 % idle by the sample's README
    assert "48 steps" in text


def test_header_of_metrics_alone_shows_what_was_sampled(samples: Path) -> None:
    text = HeaderView(maiprof_nb.load(samples / "case_study" / "before" / "gpu.csv")).value
    assert "GPU utilisation (sampled)" in text
    assert "GPU memory used (sampled)" in text
    assert "37.7 GiB" in text  # 47.13 % of 80 GiB


def test_header_of_a_trace_without_device_says_what_to_record(alone: Path) -> None:
    text = HeaderView(maiprof_nb.load(alone)).value
    assert "not answerable" in text
    assert "ProfilerActivity.CUDA" in text
    assert "1 step," in text


def test_header_of_a_snapshot_alone_begins_with_what_is_known(samples: Path) -> None:
    text = HeaderView(maiprof_nb.load(samples / "oom")).value
    titles = re.findall(r'tile-title">([^<]+)', text)
    assert titles == ["Recorded", "Peak memory", "GPU busy", "Median step"]


def test_sources_name_files_clocks_and_notes(before: Session) -> None:
    text = SourcesView(before).value
    for name in ("rank0.pt.trace.json.gz", "memory.pickle.gz", "gpu.csv", "dcgm.prom"):
        assert name in text
    assert "4 file(s)" in text
    assert all(escaping.text(note.text) in text for _, note in before.notes)


def test_a_verdict_shows_its_figure_or_why_there_is_none(before: Session, samples: Path) -> None:
    assert "66.0 %" in VerdictView(before, utilisation_verdict).value
    metrics = maiprof_nb.load(samples / "case_study" / "before" / "memory.pickle.gz")
    view = VerdictView(metrics, utilisation_verdict)
    assert view.verdict is None
    assert "Not answerable" in view.value


@pytest.mark.parametrize(
    ("problem", "kind", "text"),
    [
        (LoadError("it is torn", where="a.json"), "maiprof-status", "a.json: it is torn."),
        (
            NotAnswerableError("no steps", remedy="Mark them"),
            "maiprof-missing",
            "No steps. Mark them.",
        ),
        (ValueError("inner"), "maiprof-status", "This view failed (ValueError: inner)"),
    ],
)
def test_status_says_what_went_wrong(problem: Exception, kind: str, text: str) -> None:
    line = StatusLine()
    with line.guard():
        raise problem
    assert kind in line.value
    assert text in line.value
    with line.guard():
        pass
    assert line.value == ""


def test_page_says_which_part_is_shown_and_goes_back(before: Session, link: LinkState) -> None:
    page = PageView(before, link)
    assert "the whole recording, 53.3 s" in page.window
    link.window = TimeWindow(1_000_000_000, 3_000_000_000)
    assert page.window == "Shown: 2.00 s, from 1.00 s to 3.00 s."
    assert page.zoomed
    page._on_message(page, "whole", [])
    assert link.window is None
    assert not page.zoomed


def test_a_moment_is_marked_in_every_panel_and_taken_away(before: Session, link: LinkState) -> None:
    page, view = PageView(before, link), UtilisationView(before, link)
    assert (page.moment, list(view.figure.layout.shapes)) == ("", [])
    link.moment_ns = 31_200_000_000
    assert page.moment == "Marked: 31.2 s."
    (line,) = view.figure.layout.shapes
    assert (line.x0, line.x1, line.y0, line.y1) == (31.2, 31.2, 0, 1)
    link.window = TimeWindow(0, 1_000_000_000)
    assert list(view.figure.layout.shapes) == []  # not in the time shown
    link.window = None
    assert len(view.figure.layout.shapes) == 1
    page._on_message(page, "unmark", [])
    assert (link.moment_ns, list(view.figure.layout.shapes)) == (None, [])


def test_what_a_snapshot_alone_cannot_say_stands_beneath_its_memory(link: LinkState) -> None:
    overview = Overview(loaded("oom"), link)
    order = [id(child) for child in overview.children]
    assert order.index(id(overview.memory)) < order.index(id(overview.utilisation))


def test_one_moment_offers_nothing_over_time(corpus: Path, link: LinkState) -> None:
    session = maiprof_nb.load(corpus / "memory/flexgen/oom_snapshot.pickle")
    overview = Overview(session, link)
    assert set(overview.folds) == {"peak", "segments", "growth", "clocks"}
    overview.folds["segments"].button.value = True
    assert not any(isinstance(part, CurvesView) for part in overview.folds["segments"].children)
    assert "one moment" in PageView(session, link).window


def test_names_from_files_are_escaped_everywhere(alone: Path, link: LinkState) -> None:
    session = maiprof_nb.load(alone)
    overview = Overview(session, link)
    link.selection = Selection("operators", name=EVIL)
    shown = [overview.ranking.chosen.value]
    shown += [child.value for child in overview.children if isinstance(child, ipywidgets.HTML)]
    shown += [note.text for note in overview.utilisation.figure.layout.annotations]
    shown += [text for trace in overview.utilisation.figure.data for text in (trace.text or ())]
    assert any("onerror" in text for text in shown)
    assert not [text for text in shown if "<img" in text or "\x1b" in text]


# --- overview -----------------------------------------------------------------------------


def test_metrics_are_folded_beside_a_trace_and_open_alone(before: Session, samples: Path) -> None:
    folded = Overview(before).folds["metrics"]
    assert len(folded.children) == 1
    folded.button.value = True
    assert isinstance(folded.children[1], MetricsView)
    metrics = Overview(maiprof_nb.load(samples / "leak" / "gpu.csv")).folds["metrics"]
    assert isinstance(metrics.children[1], MetricsView)
    assert (
        Overview(maiprof_nb.load(samples / "leak" / "memory.pickle.gz")).folds.get("metrics")
        is None
    )


def test_missing_sources_are_sentences(samples: Path) -> None:
    overview = Overview(maiprof_nb.load(samples / "leak" / "memory.pickle.gz"))
    assert "neither a trace nor GPU metrics" in overview.utilisation.status.value
    assert "No operators were recorded" in overview.ranking.status.value
    assert overview.ranking.children == (overview.ranking.status,)


# --- opening and start --------------------------------------------------------------------


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A kernel of JupyterLab that remembers nothing yet."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    for name in ("SERVER_SOFTWARE", "QUERY_STRING", "MAIPROF_ROOT", "MAIPROF_RECORDING"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def served(lab: None, monkeypatch: pytest.MonkeyPatch, samples: Path) -> Path:
    """A kernel of Voila that serves one folder."""
    monkeypatch.setenv("SERVER_SOFTWARE", "voila/0.5")
    root = samples / "leak"
    monkeypatch.setenv("MAIPROF_ROOT", str(root))
    monkeypatch.setenv("MAIPROF_RECORDING", str(root))
    return root


def test_a_choice_is_remembered_for_the_other_notebooks(lab: None, samples: Path) -> None:
    assert opening.chosen_path() == opening.sample_path("case_study/before")
    opening.choose(str(samples / "leak"))
    assert opening.chosen_path() == str(samples / "leak")


def test_in_voila_the_address_says_it_and_nothing_is_remembered(
    served: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening.choose("/elsewhere")
    assert opening.chosen_path() == str(served)
    monkeypatch.setenv("QUERY_STRING", "theme=dark&recording=cpu_job%2Frecording")
    assert opening.chosen_path() == opening.sample_path("cpu_job/recording")


@pytest.mark.parametrize(
    "path", ["/etc/hostname", "{root}/../../pyproject.toml", "https://a.test/x", "file:///etc/x"]
)
def test_what_lies_outside_the_root_is_refused(served: Path, path: str) -> None:
    with pytest.raises(MaiprofError, match="does not show that place"):
        opening.allowed(path.format(root=served))


def test_a_link_does_not_lead_out(
    served: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "way").symlink_to(tmp_path)
    monkeypatch.setenv("MAIPROF_ROOT", str(root))
    with pytest.raises(MaiprofError, match="does not show that place"):
        opening.allowed(str(root / "way" / "secret.json"))


def test_a_served_url_is_allowed_and_no_other(
    served: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIPROF_ROOT", "s3://bucket/run")
    assert opening.allowed("s3://bucket/run") == "s3://bucket/run"
    assert opening.allowed("s3://bucket/run/a.json") == "s3://bucket/run/a.json"
    for other in ("s3://bucket/running", "s3://bucket/run/../x", "s3://other/run"):
        with pytest.raises(MaiprofError, match="does not show that place"):
            opening.allowed(other)


def test_the_start_page_names_what_is_open(lab: None, samples: Path) -> None:
    page = StartPage()
    assert page.session.simulated
    assert page._samples.value == "case_study/before"
    page._samples.value = "leak"
    assert page.session.recordings[0].source.startswith(str(samples / "leak"))
    assert page._path.value == opening.sample_path("leak")


def test_a_wrong_path_keeps_what_is_shown(lab: None) -> None:
    page = StartPage()
    shown = page._place.children
    page.open_recording("/nowhere/at/all")
    assert "no such file" in page.status.value
    assert "Traceback" not in page.status.value
    assert page._place.children == shown
    assert page.session.simulated
    page.open_recording("  ")
    assert "no path was given" in page.status.value.lower()


def test_without_anything_open_the_page_says_what_to_do(lab: None) -> None:
    page = StartPage("/nowhere/at/all")
    assert "Choose a sample" in page._place.children[0].value
    with pytest.raises(UsageError, match="nothing is open"):
        _ = page.session


# --- upload -------------------------------------------------------------------------------


def send(view: UploadView, *messages: tuple[dict[str, str], list[bytes]]) -> list[str]:
    replies: list[str] = []
    view.send = lambda content, *_: replies.append(content["kind"])
    for message, buffers in messages:
        view._received(view, message, buffers)
    return replies


def test_pieces_become_files_and_the_end_sets_the_folder() -> None:
    view = UploadView()
    piece = {"kind": "piece", "name": "a.json"}
    replies = send(
        view, ({"kind": "begin"}, []), (piece, [b"one,"]), (piece, [b"two"]), ({"kind": "end"}, [])
    )
    assert replies == ["next"] * 4
    assert (Path(view.folder) / "a.json").read_bytes() == b"one,two"
    first = view.folder
    send(view, ({"kind": "begin"}, []), ({"kind": "end"}, []))
    assert view.folder != first


@pytest.mark.parametrize("name", ["../../evil", "..\\..\\evil", "/etc/evil", "..", "", "a\0b"])
def test_no_name_leads_out_of_the_folder(name: str) -> None:
    view = UploadView()
    send(view, ({"kind": "begin"}, []), ({"kind": "piece", "name": name}, [b"x"]))
    written = [path for path in Path(view.area).rglob("*") if path.is_file()]
    assert len(written) == 1
    assert written[0].parent.parent == Path(view.area)


def test_too_much_is_refused_and_the_browser_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maiprof_widgets.views.upload.MAX_BYTES", 2**20)
    view = UploadView()
    replies = send(
        view, ({"kind": "begin"}, []), ({"kind": "piece", "name": "a"}, [bytes(2**20 + 1)])
    )
    assert replies == ["next", "stop"]
    assert "The upload failed" in view.status
    assert view.folder == ""


# --- folds --------------------------------------------------------------------------------


def test_a_folded_view_stays_on_the_page(before: Session, link: LinkState) -> None:
    """A plot that was taken off the page makes the browser fail at its next update."""
    folded = Overview(before, link).folds["metrics"]
    folded.button.value = True
    made = folded.children[1]
    folded.button.value = False
    assert folded.children[1] is made
    assert made.layout.display == "none"
    folded.button.value = True
    assert folded.children[1] is made
    assert made.layout.display is None
