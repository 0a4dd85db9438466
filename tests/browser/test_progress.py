"""A load that takes long, in real Voila: how far it is, stopping it, and the page afterwards."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser import dashboard_page as dashboard
from tests.browser.servers import REPO, Server, voila

NOTEBOOK = REPO / "notebooks" / "dashboards" / "overview.ipynb"
COUNT = 600_000  # events: seconds to read, without a cache
HEAD = '{"schemaVersion":1,"baseTimeNanoseconds":1700000000000000000,"traceEvents":[\n'
EVENT = (
    '{"ph":"X","cat":"cpu_op","name":"aten::op%d","pid":1,"tid":1,"ts":%d,"dur":3,'
    '"args":{"External id":%d,"Sequence number":%d,"Fwd thread id":0,'
    '"Input Dims":[[64,3,224,224],[64,3,7,7]],"Input type":["float","float"]}}'
)


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a trace that takes several seconds to read."""
    folder = tmp_path_factory.mktemp("big")
    with (folder / "big.json").open("w") as out:
        out.write(HEAD)
        for first in range(0, COUNT, 50_000):
            rows = (EVENT % (n % 40, 5 * n, n, n) for n in range(first, first + 50_000))
            out.write((",\n" if first else "") + ",\n".join(rows))
        out.write("\n]}\n")
    return folder


@pytest.fixture(scope="module")
def server(
    chromium: str,
    big: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Server]:
    patch = pytest.MonkeyPatch()
    patch.setenv("MAIPROF_CACHE", "off")
    home = tmp_path_factory.mktemp("voila-home")
    with voila(NOTEBOOK, home, recording=str(big)) as running:
        yield running
    patch.undo()


def test_progress_cancel_and_opening_something_else(
    page: Page, server: Server, big: Path, screenshot: Callable[[str], Path]
) -> None:
    """The page appears before the recording is read; Cancel leaves it ready for another."""
    page.goto(server.page())
    progress = page.locator(".maiprof-progress")
    expect(progress).to_contain_text(re.compile(r"Reading: \d+ %, about .+ left"), timeout=60_000)
    screenshot("reading")
    page.get_by_role("button", name="Cancel").click()
    said = page.locator(".maiprof-start > .widget-html", has_text="Stopped")
    expect(said).to_be_visible()
    expect(progress).to_be_hidden()
    expect(page.locator(".maiprof-empty")).to_be_visible()
    dashboard.choose_sample(page, "case study, as found")
    dashboard.wait_until_drawn(page)
    expect(dashboard.title(page)).to_contain_text("case_study/before")

    dashboard.open_path(page, str(big / "big.json"))
    expect(progress).to_contain_text(re.compile(r"\d+ %, about .+ left"))
    expect(dashboard.title(page)).to_contain_text("big.json", timeout=120_000)
    expect(progress).to_be_hidden()
    dashboard.wait_until_drawn(page)
    screenshot("opened")


def test_a_first_load_that_takes_long_is_shown_in_the_end(page: Page, server: Server) -> None:
    """What is made after the page was rendered must reach it, plots too."""
    dashboard.open_dashboard(page, server)
    expect(dashboard.title(page)).to_contain_text("big.json")
    traces = page.evaluate(f"{dashboard.PLOT}._fullData.filter(t => t.x?.length).length")
    assert traces > 0
