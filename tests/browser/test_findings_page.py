"""The findings in Chromium: a plain page, the ES module and its real Python half."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import maiprof_nb
from maiprof_nb.session import Session
from maiprof_widgets.link import LinkState
from maiprof_widgets.views.findings import FindingsView
from tests.browser.module_page import Shown, served

RULES = ["input-bound", "launch-bound", "fp32-matmul", "slow-step", "exposed-communication"]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(FindingsView._esm) as found:
        yield found


@pytest.fixture(scope="module")
def before(samples: Path) -> Session:
    return maiprof_nb.load(samples / "case_study" / "before")


def test_cards_folds_and_a_click_on_a_gap(page: Page, address: str, before: Session) -> None:
    shown = Shown(FindingsView(before, LinkState(), rules=RULES), page, address)
    expect(page.locator(".mp-headline")).to_contain_text("things cost time or memory")
    cards = page.locator(".mp-card")
    expect(cards).to_have_count(3)
    expect(cards.first).to_contain_text("The device waits for input 65.0 %")
    expect(cards.first).to_contain_text("Costs 628 ms a step")
    expect(cards.first).to_contain_text("size of the change: 1 line")
    assert page.locator("button.mp-row").count() == 0  # folded
    cards.first.get_by_text("Evidence: 10 rows").click()
    cards.first.locator("button.mp-row").first.click()
    page.wait_for_timeout(100)
    row = shown.view.findings[0].evidence[0]
    assert shown.view.link.window.start_ns < row["ts_ns"] < shown.view.link.window.end_ns
    page.get_by_text("1 not applicable").click()
    expect(page.locator(".mp-outcomes")).to_contain_text("No collective ran")


def test_the_compact_form_folds_all_but_the_dearest(
    page: Page, address: str, before: Session, screenshot: Callable[..., Path]
) -> None:
    rules = [*RULES, "periodic-reload", "no-tensor-cores"]
    page.emulate_media(color_scheme="dark")
    Shown(FindingsView(before, LinkState(), rules=rules, compact=True), page, address)
    expect(page.locator(".mp-card")).to_have_count(3)
    page.get_by_text("2 more findings").click()
    expect(page.locator(".mp-card")).to_have_count(5)
    screenshot()


def test_later_asks_when_the_page_is_there(page: Page, address: str, before: Session) -> None:
    """A loop is running here (the browser's driver), as in a kernel: rules answer one by one."""
    view = FindingsView(before, LinkState(), rules=["input-bound", "throttling"], later=True)
    assert view.findings == []
    shown = Shown(view, page, address)
    for _ in range(50):
        if not view.waiting:
            break
        page.wait_for_timeout(100)
    shown.pull()
    expect(page.locator(".mp-card")).to_have_count(1)
    expect(page.get_by_text("1 passed")).to_be_visible()
