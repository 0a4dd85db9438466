"""The icicle's canvas in Chromium: a plain page, the ES module and its real Python half."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

import maiprof_nb
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets.link import LinkState, Selection
from maiprof_widgets.views.icicle import IcicleView
from tests.browser.module_page import Shown, served

ROW = 20


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(IcicleView._esm) as found:
        yield found


@pytest.fixture(scope="module")
def before(samples: Path) -> Session:
    return maiprof_nb.load(samples / "case_study" / "before")


@pytest.fixture
def show(page: Page, address: str) -> Callable[..., Shown]:
    def open_page(view: IcicleView, *, width: int = 1280, scheme: Any = "light") -> Shown:
        page.set_viewport_size({"width": width, "height": 760})
        page.emulate_media(color_scheme=scheme)
        return Shown(view, page, address)

    return open_page


@pytest.fixture
def shown(show: Callable[..., Shown], before: Session) -> Shown:
    return show(IcicleView(before))


def said(shown: Shown) -> Any:
    return shown.page.locator(".mp-said")


def test_the_case_studys_function_is_there_and_said_to_a_screen_reader(shown: Shown) -> None:
    """The simulated worker threads decode rows; the figure is that of `functions_in_gaps`."""
    label = shown.page.get_attribute("canvas.mp-canvas", "aria-label") or ""
    assert "What the host did while every GPU was idle" in label
    assert "recommender/table.py(84): decode_row, 42.5 s" in label
    assert "3 threads" in label


def test_a_click_selects_and_looks_into_and_escape_leads_out(shown: Shown) -> None:
    box = shown.page.locator("canvas.mp-canvas").bounding_box()
    assert box is not None
    shown.page.mouse.click(box["x"] + 10, box["y"] + 1.5 * ROW)
    shown.settle()
    assert shown.view.link.selection == Selection(
        "python_calls", name="recommender/train.py(1): <module>"
    )
    back = shown.page.get_by_role("button", name="Back")
    expect(back).to_be_enabled()
    shown.page.focus("canvas.mp-canvas")
    shown.page.keyboard.press("Escape")
    shown.page.keyboard.press("Escape")
    expect(back).to_be_disabled()


def test_looking_into_a_box_fetches_finer_ones(shown: Shown) -> None:
    """What the first picture merges as small is there after a click on its caller, and said."""
    coarse = set(shown.view.picture["path"])
    box = shown.page.locator("canvas.mp-canvas").bounding_box()
    assert box is not None
    shown.page.mouse.click(box["x"] + 10, box["y"] + 1.5 * ROW)
    shown.page.wait_for_function("() => document.querySelector('.maiprof').dataset.refined")
    finer = shown.view.finer["nodes"]
    fresh = [row for row, path in enumerate(finer["path"]) if path not in coarse]
    assert fresh
    name = finer["names"][finer["name"][fresh[0]]]
    shown.page.get_by_label("Search frames").fill(name)
    expect(said(shown)).to_contain_text("call path")
    shown.page.get_by_label("Search frames").fill("")
    shown.page.get_by_role("button", name="Back").click(click_count=2)
    expect(shown.page.get_by_role("button", name="Back")).to_be_disabled()


def test_arrows_walk_the_tree_and_enter_looks_into(shown: Shown) -> None:
    shown.page.focus("canvas.mp-canvas")
    shown.page.keyboard.press("ArrowDown")
    expect(said(shown)).to_contain_text("threads that launch device work")
    shown.page.keyboard.press("ArrowDown")
    expect(said(shown)).to_contain_text("recommender/train.py(1): <module>")
    shown.page.keyboard.press("ArrowUp")
    shown.page.keyboard.press("ArrowRight")
    expect(said(shown)).to_contain_text("other threads")
    shown.page.keyboard.press("Enter")
    expect(shown.page.get_by_role("button", name="Back")).to_be_enabled()


def test_search_says_how_much_of_the_time(shown: Shown) -> None:
    shown.page.get_by_label("Search frames").fill("sharded_iterrows")
    expect(said(shown)).to_contain_text("% of the host time shown")
    shown.page.get_by_label("Search frames").fill("no such frame")
    expect(said(shown)).to_have_text("No frame here has that in its name.")


def test_the_switch_shows_all_time_and_the_window_is_followed(shown: Shown) -> None:
    title = shown.page.locator(".mp-title")
    shown.page.get_by_label("gaps only").uncheck()
    expect(title).to_have_text("What the host did in the time shown")
    shown.view.link.window = TimeWindow(10_000_000_000, 11_000_000_000)
    shown.page.wait_for_timeout(400)  # the view waits until a drag is over
    shown.pull()
    expect(shown.page.locator(".mp-notices").first).to_contain_text("1.00 s looked at")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1920, "dark")])
def test_pictures(
    show: Callable[..., Shown], before: Session, width: int, scheme: str,
    screenshot: Callable[..., Path],
) -> None:  # fmt: skip
    shown = show(IcicleView(before, LinkState()), width=width, scheme=scheme)
    shown.page.wait_for_function(  # it is painted with the next frame; the top row fills the width
        """() => { const c = document.querySelector("canvas.mp-canvas");
        const d = c.getContext("2d").getImageData(0, 2, c.width, 14).data;
        let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0;
        return n / (d.length / 4) > 0.98; }"""
    )
    shown.page.mouse.move(400, 200)
    shown.settle()
    screenshot()
