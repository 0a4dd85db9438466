"""The allocator's segments in Chromium: a plain page, the ES module and its real Python half."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

import maiprof_nb
from maiprof_widgets.link import Selection
from maiprof_widgets.views.allocator_state import AllocatorStateView
from tests.browser.module_page import Shown, served

STRANDED = "memory/cs336-kk/memory_ctx256_fullstep.pickle.gz"  # 20 128 events


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(AllocatorStateView._esm, AllocatorStateView._css) as found:
        yield found


@pytest.fixture
def show(page: Page, address: str) -> Callable[..., Shown]:
    def open_page(view: AllocatorStateView, width: int = 1280, scheme: Any = "light") -> Shown:
        page.set_viewport_size({"width": width, "height": 1000})
        page.emulate_media(color_scheme=scheme)
        return Shown(view, page, address)

    return open_page


def reached(shown: Shown, state: int) -> None:
    said = shown.page.locator(".mp-moment")
    expect(said).to_contain_text(f"event {state:,}".replace(",", "\N{NARROW NO-BREAK SPACE}"))
    shown.settle()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1920, "dark")])
def test_scrub_hover_and_choose(
    show: Callable[..., Shown], corpus: Path, width: int, scheme: Any,
    screenshot: Callable[..., Path],
) -> None:  # fmt: skip
    view = AllocatorStateView(maiprof_nb.load(corpus / STRANDED))
    shown = show(view, width, scheme)
    page = shown.page
    reached(shown, view.state)  # where most is allocated, some events before the end
    assert view.state == view._known.about()["peak"] < 20128
    page.get_by_title("The end of the log").click()
    reached(shown, 20128)
    label = page.get_attribute(".mp-rows canvas", "aria-label") or ""
    assert "305 holes" in label  # by `room` of the analysis
    figures = page.inner_text(".mp-figures")
    assert "3.15 GiB" in figures  # stranded: 3.2 GB by the corpus' SOURCES.md
    assert max(page.evaluate("window.sizes")) < 250_000

    # buttons, keys and the strip move the moment, and Python and the link know
    page.get_by_title("Previous event").click()
    reached(shown, 20127)
    assert view.link.moment_ns == int(view._known.history.ts_ns[20127])
    page.get_by_title("The end of the log").click()
    reached(shown, 20128)
    assert view.link.moment_ns == int(view._known.history.ts_ns[-1])
    page.focus(".mp-rows canvas")
    page.keyboard.press("ArrowLeft")
    reached(shown, 20127)
    strip = page.locator(".mp-strip canvas").bounding_box()
    assert strip is not None
    page.mouse.move(strip["x"] + strip["width"] * 0.2, strip["y"] + 30)
    page.mouse.down()
    page.mouse.move(strip["x"] + strip["width"] / 2, strip["y"] + 30, steps=20)
    page.mouse.up()
    page.wait_for_timeout(300)
    assert abs(view.state - 10064) < 40
    reached(shown, view.state)

    # what the link points at is followed
    view.link.moment_ns = int(view._known.history.ts_ns[12000])
    shown.pull()
    reached(shown, view.state)
    assert page.locator(".mp-slider").input_value() == str(view.state)

    # a block under the pointer tells its stack and address; a click selects and outlines it
    box = page.locator(".mp-rows canvas").first.bounding_box()
    assert box is not None
    bar = (box["x"] + 20, box["y"] + 27)
    page.mouse.move(*bar)
    expect(page.locator(".mp-tip")).to_contain_text("B requested, ")
    expect(page.locator(".mp-tip")).to_contain_text("in the segment at 0x")
    page.mouse.click(*bar)
    expect(page.locator(".mp-panel")).to_contain_text("Chosen: ")
    assert view.link.selection is not None
    assert view.link.selection.table == "allocations"
    assert ringed(page, scheme) > 20
    screenshot()

    # an allocation of another moment is said to be elsewhere, and led to
    later = int(view._known.allocations[view._known.history.blocks["first_state"].argmax()])
    view.link.selection = Selection("allocations", row=later)
    shown.pull()
    expect(page.locator(".mp-panel")).to_contain_text("does not live at the moment shown")
    page.get_by_role("button", name="Go to where it is made").click()
    expect(page.locator(".mp-panel")).not_to_contain_text("does not live")
    assert view.state == view._known.history.blocks["first_state"].max()

    # play goes on by itself, from the beginning when at the end, and can be stopped
    page.get_by_title("The end of the log").click()
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("() => Number(document.querySelector('.mp-slider').value) > 300")
    page.get_by_role("button", name="Pause").click()
    page.wait_for_timeout(200)
    assert 0 < view.state < 20128
    assert view.status == ""


def ringed(page: Page, scheme: str) -> int:
    """Pixels of the accent colour in the rows."""
    accent = {"light": [0x0B, 0x69, 0xC7], "dark": [0x5A, 0xA9, 0xF5]}[scheme]
    return int(
        page.evaluate(
            """accent => { const c = document.querySelector(".mp-rows canvas");
            const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
            let n = 0;
            for (let i = 0; i < d.length; i += 4) {
              n += accent.every((part, k) => Math.abs(d[i + k] - part) < 3);
            }
            return n; }""",
            accent,
        )
    )


def test_a_state_without_a_log_and_names_that_are_no_markup(
    show: Callable[..., Shown], corpus: Path
) -> None:
    view = AllocatorStateView(maiprof_nb.load(corpus / "memory/blockzero/cuda_snapshot.pickle"))
    evil = "<img src=x onerror=window.broken=1>"
    stacks = view._known.log.stacks
    stacks["label"] = stacks["label"].cat.rename_categories(lambda text: evil + str(text))
    shown = show(view)
    expect(shown.page.locator(".mp-legend-left")).to_contain_text(evil)
    assert not shown.page.is_visible(".mp-slider")
    expect(shown.page.locator(".mp-moment")).to_contain_text("no log of events")
    assert shown.page.evaluate("window.broken") is None
    assert shown.page.locator(".mp-segments img").count() == 0
