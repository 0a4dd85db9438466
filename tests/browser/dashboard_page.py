"""The dashboard as a person uses it: what it shows, and the gestures that change it."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from tests.browser.servers import Server

SECONDS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
MARGINS = (62, 14)  # of the memory canvas, left and right, as in memory.js
PLOT = "document.querySelector('.maiprof-curves .js-plotly-plot')"


def open_dashboard(page: Page, server: Server, **query: str) -> None:
    """Open the page and wait until every view of it has drawn."""
    page.goto(server.page(**query))
    wait_until_drawn(page)


def wait_until_drawn(page: Page) -> None:
    """Plot, table and, where there is any, memory; every rule has answered."""
    expect(page.locator(".maiprof-curves .main-svg").first).to_be_visible(timeout=60_000)
    expect(rows(page).first).to_be_visible()
    page.wait_for_function(
        "() => document.querySelector('.mp-findings')?.dataset.waiting === '0'", timeout=60_000
    )
    page.wait_for_function(
        "() => { const m = document.querySelector('.mp-memory');"
        " return !m || Number(m.dataset.painted ?? 0) > 0 || m.querySelector('.mp-empty p'); }"
    )


def title(page: Page) -> Locator:
    """What is open, by name."""
    return page.locator(".maiprof-header h2")


def sentence(page: Page) -> Locator:
    """Which part of the recording is on screen, in words."""
    return page.locator(".maiprof-page [role=status]")


def rows(page: Page) -> Locator:
    """Rows of the operator table."""
    return page.locator(".maiprof-ranking .dt-scroll-body tbody tr")


def caption(page: Page) -> Locator:
    """The sentence above the operator table."""
    return page.locator(".maiprof-ranking .widget-html-content").first


def range_of_plot(page: Page) -> list[float]:
    """The time axis of the utilisation view, in its unit."""
    found: list[float] = page.evaluate(f"{PLOT}._fullLayout.xaxis.range.map(Number)")
    return found


def drag_in_plot(page: Page, first: float, last: float) -> None:
    """Drag between two places of the utilisation view's time axis, as shares of its width."""
    left, width, top = page.evaluate(
        f"(() => {{ const g = {PLOT}; g.scrollIntoView({{block: 'center'}});"
        " const s = g._fullLayout._size, box = g.getBoundingClientRect();"
        " return [box.left + s.l, s.w, box.top + s.t]; })()"
    )
    page.mouse.move(left + first * width, top + 60)
    page.mouse.down()
    page.mouse.move(left + last * width, top + 70, steps=6)
    page.mouse.up()


def double_click_plot(page: Page) -> None:
    """Double click into the utilisation view."""
    page.locator(".maiprof-curves .nsewdrag").first.dblclick()


def canvas_point(page: Page, across: float, up: float) -> tuple[float, float]:
    """A place in the memory view, as shares of its axes, in pixels of the page."""
    canvas = page.locator("canvas.mp-canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    left, right = MARGINS
    width = box["width"] - left - right
    return box["x"] + left + across * width, box["y"] + 22 + (1 - up) * (box["height"] - 60)


def moment_in_memory(page: Page, across: float) -> float:
    """The time in seconds that the memory view says is at a place of its axis."""
    page.mouse.move(1, 1)
    x, y = canvas_point(page, across, 0.05)
    page.mouse.move(x, y)
    tip = page.locator(".mp-tip .mp-dim")
    expect(tip).to_be_visible()
    found = re.match(r"at ([\d.,]+) (\w+):", tip.inner_text())
    assert found, tip.inner_text()
    return float(found[1].replace(",", "")) * SECONDS[found[2]]


def fold_button(page: Page) -> Locator:
    """What opens and closes the GPU metrics."""
    return page.locator(".maiprof-folded > .jupyter-button", has_text="GPU metrics")


def marks(page: Page) -> int:
    """How many points mark calls of the chosen operator in the timeline."""
    found: int = page.evaluate(f"{PLOT}._fullData.find(t => t.name === 'marks').x?.length ?? 0")
    return found


def open_path(page: Page, path: str) -> None:
    """Type a path into the start page and open it."""
    page.get_by_role("tab", name="Path or URL").click()
    page.locator(".maiprof-start input[type=text]").first.fill(path)
    page.get_by_role("button", name="Open").click()


def choose_sample(page: Page, words: str) -> None:
    """Choose from the list of samples the one whose text has these words."""
    page.get_by_role("tab", name="Sample").click()
    chooser = page.locator(".maiprof-start select").first
    chooser.select_option(label=chooser.locator("option", has_text=words).inner_text())


def show_everything(page: Page) -> None:
    """Undo zoom, search and choice."""
    whole = page.get_by_role("button", name="Show the whole recording")
    if whole.is_enabled():
        whole.click()
    expect(sentence(page)).to_contain_text("the whole recording")
    page.locator(".maiprof-ranking .dt-search input").fill("")
    if page.locator(".maiprof-ranking tr.selected").count():
        page.locator(".maiprof-ranking tr.selected").first.click()
    expect(page.locator(".maiprof-chosen")).to_have_count(0)
    if page.locator(".maiprof-folded .js-plotly-plot:visible").count():
        fold_button(page).click()
