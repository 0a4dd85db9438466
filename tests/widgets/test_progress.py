"""Loads that can be watched and stopped, without a browser."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path

import ipywidgets
import pytest

import maiprof_nb
from maiprof_nb.errors import LoadError, UsageError
from maiprof_nb.session import Session
from maiprof_widgets import StartPage
from maiprof_widgets.dashboards import opening
from maiprof_widgets.dashboards.background import BackgroundLoad, CancelledError
from maiprof_widgets.views.progress import ProgressView, progress_words

Report = Callable[[float], None]


@pytest.fixture(scope="module")
def cpu_job(samples: Path) -> Session:
    return maiprof_nb.load(samples / "cpu_job" / "recording")


class SlowLoad:
    """Stands in for `opening.open_path`: goes on when told, and says how far it is."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.go_on = threading.Event()
        self.ended = threading.Event()
        self.problem: Exception | None = None

    def __call__(self, _path: str, report: Report | None = None) -> Session:
        assert report is not None
        try:
            while not self.go_on.wait(0.01):
                report(0.25)
            if self.problem is not None:
                raise self.problem
            return self.session
        finally:
            self.ended.set()


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cpu_job: Session) -> SlowLoad:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("SERVER_SOFTWARE", raising=False)
    monkeypatch.setattr("maiprof_widgets.dashboards.start.PATIENCE_S", 0.05)
    load = SlowLoad(cpu_job)
    monkeypatch.setattr(opening, "open_path", load)
    return load


def bare(_session: Session) -> ipywidgets.Widget:
    """A view that costs nothing."""
    return ipywidgets.HTML("the view")


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


def test_a_long_load_shows_how_far_it_is_and_then_the_recording(slow: SlowLoad) -> None:
    async def scene() -> None:
        page = StartPage("somewhere", view=bare)  # returns although nothing is loaded
        assert page._place.children == ()
        await until(lambda: page.progress.layout.display == "flex")
        assert page.progress.bar.value == 0.25
        assert "25 %, about" in page.progress.words.value
        slow.go_on.set()
        await until(lambda: len(page._place.children) == 1)
        assert page.progress.layout.display == "none"
        assert page.session is slow.session
        assert not page._open.disabled

    asyncio.run(scene())


def test_cancel_stops_it_and_the_page_stays_usable(slow: SlowLoad) -> None:
    async def scene() -> None:
        page = StartPage("somewhere", view=bare)
        await until(lambda: page.progress.layout.display == "flex")
        page.progress.button.click()
        assert slow.ended.wait(20)  # the thread itself ends, not only its picture
        await until(lambda: "Stopped" in page.status.value)
        assert page.progress.layout.display == "none"
        assert "Nothing is open" in page._place.children[0].value
        with pytest.raises(UsageError, match="nothing is open"):
            _ = page.session
        slow.go_on.set()
        page.open_recording("again")
        await until(lambda: page._session is slow.session)

    asyncio.run(scene())


def test_session_waits_for_the_load_under_way(slow: SlowLoad) -> None:
    async def scene() -> None:
        page = StartPage("somewhere", view=bare)
        threading.Timer(0.3, slow.go_on.set).start()
        assert page.session is slow.session  # as the next cell of a guide asks

    asyncio.run(scene())


def test_a_later_choice_takes_the_place_of_a_load(
    slow: SlowLoad, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        page = StartPage("first", view=bare)
        other = SlowLoad(slow.session)
        other.go_on.set()
        monkeypatch.setattr(opening, "open_path", other)
        page.open_recording("second")
        assert slow.ended.wait(20)
        await until(lambda: page._session is other.session)
        assert page._path.value == "second"
        assert "Stopped" not in page.status.value

    asyncio.run(scene())


def test_what_goes_wrong_in_the_thread_is_a_sentence(slow: SlowLoad) -> None:
    async def scene() -> None:
        slow.problem = LoadError("is torn", where="a.json")
        slow.go_on.set()
        page = StartPage("somewhere", view=bare)
        await until(lambda: "is torn" in page.status.value)
        assert "Traceback" not in page.status.value

    asyncio.run(scene())


def test_a_real_load_is_stopped_by_its_report(tmp_path: Path) -> None:
    """By the documented contract of ``load(report=...)``; the file is read in several parts."""
    event = '{"ph":"X","cat":"cpu_op","name":"op","pid":1,"tid":1,"ts":%d,"dur":1,"args":{}}'
    path = tmp_path / "trace.json"
    rows = ",".join(event % number for number in range(150_000))
    path.write_text(f'{{"schemaVersion":1,"traceEvents":[{rows}]}}')
    shares: list[float] = []

    def work(report: Report) -> Session:
        def listen(share: float) -> None:
            shares.append(share)
            load.cancel()
            report(share)

        return maiprof_nb.load(path, report=listen)

    load = BackgroundLoad(str(path), work)
    assert load.wait(60)
    assert load.cancelled
    assert len(shares) == 1
    assert shares[0] < 1
    with pytest.raises(CancelledError):
        load.result()


@pytest.mark.parametrize(
    ("share", "elapsed_s", "left_s", "words"),
    [
        (0.0, 3.2, None, "Reading: 3 s so far"),
        (0.4, 8.0, 12.0, "Reading: 40 %, about 12 s left"),
        (0.999, 8.0, 0.01, "Reading: 100 %, about 1 s left"),
        (0.1, 20.0, 180.0, "Reading: 10 %, about 3 min 00 s left"),
    ],
)
def test_words_of_the_bar(share: float, elapsed_s: float, left_s: float | None, words: str) -> None:
    assert progress_words("Reading", share, elapsed_s, left_s) == words


def test_without_cancel_there_is_no_button() -> None:
    view = ProgressView()
    assert view.button not in view.children
