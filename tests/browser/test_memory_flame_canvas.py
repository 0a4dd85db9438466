"""The icicle of bytes in Chromium: the icicle's ES module fed with memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from maiprof_nb.analysis.memory_peak import memory_peak
from maiprof_widgets.link import LinkState
from maiprof_widgets.views.memory_flame import MemoryFlameView
from tests.browser.module_page import Shown, served
from tests.shipped_samples import loaded

ROW = 20


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(MemoryFlameView._esm) as found:
        yield found


def test_boxes_are_bytes_and_a_click_chooses_the_stack(page: Page, address: str) -> None:
    """Sizes and blocks as the simulated leak's truth has them: 9.58 GiB in 128 blocks."""
    view = MemoryFlameView(LinkState())
    view.show(memory_peak(loaded("leak")), "Bytes by call path")
    page.set_viewport_size({"width": 1280, "height": 760})
    shown = Shown(view, page, address)
    label = page.get_attribute("canvas.mp-canvas", "aria-label") or ""
    assert "9.58 GiB in 128 blocks" in label
    assert "Most own bytes of your code: recommender/model.py(19): forward, 288 MiB" in label
    expect(page.get_by_text("gaps only")).to_be_hidden()
    box = page.locator("canvas.mp-canvas").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 10, box["y"] + 5.5 * ROW)
    expect(page.locator(".mp-tip")).to_contain_text("recommender/model.py(47): forward")
    expect(page.locator(".mp-tip")).to_contain_text("8.81 GiB with callees (92 %), 0 B own")
    expect(page.locator(".mp-tip")).to_contain_text("53 blocks")
    page.mouse.click(box["x"] + 10, box["y"] + 5.5 * ROW)
    shown.settle()
    stacks = loaded("leak").table("stacks").set_index("stack")["label"]
    chosen = view.link.selection
    assert chosen is not None
    assert (chosen.table, stacks[chosen.row]) == ("stacks", "forward (recommender/model.py:47)")
    page.get_by_label("Search frames").fill("model.py")
    expect(page.locator(".mp-said")).to_contain_text("of all shown")


def test_a_reply_after_all_patience_still_counts(page: Page, address: str) -> None:
    """A kernel that runs the cells of a whole notebook answers late, and nobody asks again."""
    view = MemoryFlameView(LinkState())
    view.show(memory_peak(loaded("leak")), "Bytes by call path")
    Shown(view, page, address)
    heard = page.evaluate(
        "async () => { const {newestWins} = await import('/canvas-kit.js');"
        " const sent = []; const asks = newestWins(r => sent.push(r.id), 20);"
        " asks.ask({}); await new Promise(r => setTimeout(r, 80));"
        " const late = [asks.busy, asks.answered(1)];"
        " asks.ask({}); asks.ask({}); return [...late, asks.answered(1), asks.answered(2), sent]; }"
    )
    assert heard == [False, True, False, True, [1, 2, 3]]
