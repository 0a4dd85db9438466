"""The guided notebooks in a real JupyterLab, on copies."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from maiprof_nb import load
from tests.browser import dashboard_page as dashboard
from tests.browser import lab_page
from tests.browser.servers import REPO, Server

GUIDES = REPO / "notebooks" / "guides"
NAMES = sorted(path.name for path in GUIDES.glob("*.ipynb"))
# What must be there to see after a run, a selector each.
VIEWS = {
    "00_start.ipynb": (".maiprof-tiles", ".js-plotly-plot", "canvas.mp-canvas", "table.dataTable"),
    "01_utilisation.ipynb": (".js-plotly-plot", ".maiprof-verdict", ".mp-card"),
    "02_python_while_idle.ipynb": (
        ".maiprof-verdict",
        ".mp-icicle canvas.mp-canvas",
        ".js-plotly-plot",
        "table.dataTable",
        ".mp-card",
    ),
    "03_gpu_metrics.ipynb": (".js-plotly-plot", ".maiprof-verdict", ".mp-card"),
    "04_training_loop.ipynb": (
        ".maiprof-verdict",
        ".js-plotly-plot",
        "table.dataTable",
        ".mp-card",
    ),
    "05_fixes.ipynb": (".js-plotly-plot", "table", ".mp-card"),
    "06_memory.ipynb": (
        ".maiprof-verdict",
        ".mp-memory canvas.mp-canvas",
        ".mp-icicle canvas.mp-canvas",
        ".js-plotly-plot",
        "table.dataTable",
        ".mp-card",
    ),
}


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, start_lab: Callable[..., Server], samples: Path
) -> Server:
    root = tmp_path_factory.mktemp("guides")
    for name in NAMES:
        shutil.copy(GUIDES / name, root)
    return start_lab(root, recording=str(samples / "case_study" / "before"))


def test_every_guide_is_covered() -> None:
    assert sorted(VIEWS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_guide_runs_to_its_end_and_shows_its_views(
    page: Page, server: Server, name: str, screenshot: Callable[..., Path]
) -> None:
    shipped = (GUIDES / name).read_bytes()
    page.set_viewport_size({"width": 1400, "height": 3600})  # Jupyter draws what is in sight
    lab_page.open_notebook(page, server, name)
    lab_page.run_all(page)
    for selector in VIEWS[name]:
        expect(page.locator(f".jp-OutputArea {selector}").first).to_be_visible()
    assert page.locator(".maiprof-status").all_inner_texts() == []
    screenshot()
    expect_plots_to_fill_their_place(page)
    assert lab_page.failures(lab_page.saved(page, server, name)) == []
    assert (GUIDES / name).read_bytes() == shipped


def expect_plots_to_fill_their_place(page: Page) -> None:
    """Plotly draws before it is on the page, and would keep the width it guessed."""
    page.wait_for_function(
        "() => [...document.querySelectorAll('.js-plotly-plot')].every(plot => {"
        " const drawn = plot.querySelector('.main-svg').getBoundingClientRect().width;"
        " const place = plot.closest('.jp-OutputArea-output').getBoundingClientRect().width;"
        " return drawn <= place + 1 && drawn > 0.93 * place; })"
    )


def test_the_other_guides_follow_the_start_page(page: Page, server: Server, samples: Path) -> None:
    page.set_viewport_size({"width": 1400, "height": 2400})
    lab_page.open_notebook(page, server, "00_start.ipynb")
    lab_page.run_all(page)
    dashboard.choose_sample(page, "memory leak")
    expect(dashboard.title(page)).to_contain_text("leak")
    lab_page.open_notebook(page, server, "01_utilisation.ipynb")
    lab_page.run_all(page)
    seconds = load(samples / "leak").span.dur_ns / 1e9
    expect(page.locator(".maiprof-page:visible [role=status]")).to_contain_text(
        f"the whole recording, {seconds:.3g} s"
    )
