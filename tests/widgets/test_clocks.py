"""Sources moved by hand: what is typed, and what the dashboard makes of it."""

from __future__ import annotations

from pathlib import Path

import ipywidgets
import pytest

import maiprof_nb
from maiprof_nb.errors import UsageError
from maiprof_nb.session import Session
from maiprof_nb.timebase import NS_PER_S, TimeWindow
from maiprof_widgets import LinkState, MetricsView, Overview, StartPage
from maiprof_widgets.dashboards.twin import twin_of
from maiprof_widgets.views._durations import typed_duration
from maiprof_widgets.views.clocks import ClocksView


@pytest.fixture(scope="module")
def before(samples: Path) -> Session:
    return maiprof_nb.load(samples / "case_study" / "before")


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("+2 h", 7_200_000_000_000),
        ("-13.4 s", -13_400_000_000),
        ("\N{MINUS SIGN}13.4s", -13_400_000_000),
        ("1 h 30 min", 5_400_000_000_000),
        ("0.000000001 s", 1),
        ("123456789.000000007 s", 123_456_789_000_000_007),  # no float holds this
        ("12 µs", 12_000),
        ("12 us", 12_000),
        ("5min", 300_000_000_000),
    ],
)
def test_what_people_type_is_exact(text: str, ns: int) -> None:
    assert typed_duration(text) == ns


@pytest.mark.parametrize(
    "text",
    ["", "+", "7", "two hours", "1,5 s", "1 h x", "--2 s", "9" * 40 + " s", "1e9 s", "99999 d"],
)
def test_what_is_no_time_says_how_to_write_one(text: str) -> None:
    with pytest.raises(UsageError, match="Write a number and a unit"):
        typed_duration(text)


def row_of(view: ClocksView, name: str) -> ipywidgets.HBox:
    return next(row for row in view.rows if f"<b>{name}" in row.children[0].value)


def press(row: ipywidgets.HBox, words: str) -> None:
    next(b for b in row.children if getattr(b, "description", "") == words).click()


def clocks(overview: Overview) -> ClocksView:
    overview.folds["clocks"].button.value = True
    return overview.folds["clocks"].children[1]


def offset_of(session: Session, name: str) -> int:
    return session.placements[session.number_of(name)].offset_ns


def test_a_typed_move_is_shown_everywhere_and_undone(before: Session) -> None:
    overview = Overview(before)
    overview.folds["metrics"].button.value = True
    overview.link.window = TimeWindow(20 * NS_PER_S, 30 * NS_PER_S)
    row = row_of(clocks(overview), "gpu.csv")
    row.offset.value = "+2 s"
    press(row, "Move")
    assert offset_of(overview.session, "gpu.csv") == offset_of(before, "gpu.csv") + 2 * NS_PER_S
    assert overview.link.window == TimeWindow(20 * NS_PER_S, 30 * NS_PER_S)
    metrics = overview.folds["metrics"].children[1]
    assert isinstance(metrics, MetricsView)  # still open
    assert metrics.session is overview.session
    assert metrics.figure.layout.xaxis.range == (20.0, 30.0)
    assert "by hand" in row_of(clocks(overview), "gpu.csv").children[0].value
    press(row_of(clocks(overview), "gpu.csv"), "By its clock")
    assert offset_of(overview.session, "gpu.csv") == offset_of(before, "gpu.csv")


def test_the_views_that_were_replaced_hear_nothing_more(before: Session) -> None:
    overview = Overview(before)
    old = overview.utilisation
    overview.show(before.placed({"gpu.csv": 0}))
    overview.link.window = TimeWindow(10 * NS_PER_S, 11 * NS_PER_S)
    assert old.link.window is None
    assert overview.utilisation.figure.layout.xaxis.range == (10.0, 11.0)
    overview.utilisation.figure.layout.xaxis.range = (10.0, 10.5)  # and back: a drag
    assert overview.link.window == TimeWindow(10 * NS_PER_S, 10_500_000_000)


def test_an_estimate_finds_what_was_moved(before: Session) -> None:
    """The right offset is that of the sample's own clock, to half a sampling interval."""
    overview = Overview(before.placed({"gpu.csv": 8 * NS_PER_S}))
    press(row_of(clocks(overview), "gpu.csv"), "Estimate")
    found = offset_of(overview.session, "gpu.csv")
    assert abs(found - offset_of(before, "gpu.csv")) < NS_PER_S // 4
    assert "estimated by" in row_of(clocks(overview), "gpu.csv").children[0].value


def test_a_refusal_is_a_sentence_and_changes_nothing(samples: Path, tmp_path: Path) -> None:
    path = tmp_path / "gpu.csv"
    path.write_text(
        "timestamp, index, utilization.gpu [%]\n"
        "2026/03/02 09:00:00.000, 0, 40 %\n2026/03/02 09:00:01.000, 0, 40 %\n"
    )
    trace = samples / "case_study" / "before" / "rank0.pt.trace.json.gz"
    session = maiprof_nb.load([trace, path])
    shown: list[Session] = []
    view = ClocksView(session, shown.append)
    press(row_of(view, "gpu.csv"), "Estimate")
    assert shown == []
    assert "No offset can be estimated" in view.status.value.replace(str(path) + ": no", "No")
    row_of(view, "gpu.csv").offset.value = "soon"
    press(row_of(view, "gpu.csv"), "Move")
    assert "no time to move by" in view.status.value
    assert shown == []


def test_a_saved_session_opens_again_as_it_lay(
    samples: Path, tmp_path: Path, before: Session
) -> None:
    session = before.placed({"gpu.csv": 5 * NS_PER_S})
    view = ClocksView(session, lambda _session: None)
    assert view.path.value.endswith("before.maiprof.json")
    view.path.value = str(tmp_path / "review.maiprof.json")
    view.save()
    assert "trust_paths=True" in view.status.value  # the recordings lie elsewhere
    again = maiprof_nb.load(tmp_path / "review.maiprof.json", trust_paths=True)
    assert offset_of(again, "gpu.csv") == 5 * NS_PER_S
    view.path.value = " "
    view.save()
    assert "no place to save to" in view.status.value.lower()


def test_visitors_of_a_server_cannot_write_to_it(
    before: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVER_SOFTWARE", "voila/0.5")
    assert not hasattr(clocks(Overview(before)), "path")


def test_rows_without_times_are_spaced(tmp_path: Path) -> None:
    path = tmp_path / "dmon.txt"
    path.write_text("#Entity   GPUTL\nID\nGPU 0     10\nGPU 0     20\nGPU 0     30\n")
    shown: list[Session] = []
    view = ClocksView(maiprof_nb.load(path), shown.append)
    view.rows[0].interval.value = 0.5
    press(view.rows[0], "Space")
    assert view.status.value == ""
    assert shown[0].table("counters")["ts_ns"].tolist() == [0, NS_PER_S // 2, NS_PER_S]


def test_twins_agree_until_they_part() -> None:
    link = LinkState()
    twin, part = twin_of(link)
    twin.window = TimeWindow(0, 5)
    assert link.window == TimeWindow(0, 5)
    link.dark = True
    assert twin.dark
    part()
    link.window = None
    assert twin.window == TimeWindow(0, 5)


def test_the_start_pages_session_is_the_one_that_was_moved(
    samples: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    page = StartPage(str(samples / "case_study" / "before"))
    overview = page._place.children[0]
    row = row_of(clocks(overview), "gpu.csv")
    row.offset.value = "-1 s"
    press(row, "Move")
    assert page.session is overview.session
    assert page.session.placements[page.session.number_of("gpu.csv")].stated
