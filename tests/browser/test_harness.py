"""The harness itself: real servers, working widgets, and a watch that does bark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import lab_page
from tests.browser.servers import Server
from tests.browser.watching import Watch

COUNTER = '''
class Counter(anywidget.AnyWidget):
    _esm = """
    function render({ model, el }) {
      const button = document.createElement("button");
      button.className = "counter";
      const show = () => { button.textContent = "count " + model.get("n"); };
      button.onclick = () => { model.set("n", model.get("n") + 1); model.save_changes(); };
      model.on("change:n", show);
      show();
      el.appendChild(button);
    }
    export default { render };
    """
    n = traitlets.Int(0).tag(sync=True)
'''
VIEW = """
counter, seen = Counter(), w.Label("kernel saw 0")
counter.observe(lambda change: setattr(seen, "value", f"kernel saw {change.new}"), "n")
figure = go.FigureWidget(go.Figure(go.Scatter(x=[0, 1, 2], y=[0, 1, 0])))
recording = w.Label("recording " + os.environ["MAIPROF_RECORDING"])
w.VBox([recording, counter, seen, w.Button(description="open", icon="folder-open"), figure])
"""
IMPORTS = """
import os
import anywidget, ipywidgets as w, plotly.graph_objects as go, traitlets
"""


def write_notebook(path: Path, *sources: str) -> Path:
    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_markdown_cell("# Throw-away\n\nA formula: $x^2$"),
            *(nbformat.v4.new_code_cell(source.strip()) for source in sources),
        ],
        metadata={
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}
        },
    )
    nbformat.write(notebook, path)
    return path


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("notebooks") / "start.ipynb"
    return write_notebook(path, IMPORTS, COUNTER, VIEW)


def expect_living_widgets(page: Page) -> None:
    """The figure is drawn, and a click goes to the kernel and comes back."""
    expect(page.get_by_text("recording /some/where")).to_be_visible(timeout=60_000)
    expect(page.locator(".js-plotly-plot .scatterlayer path.js-line")).to_be_visible()
    page.locator("button.counter").click()
    expect(page.get_by_text("kernel saw 1")).to_be_visible()


def test_jupyterlab_runs_a_notebook_to_its_end(
    page: Page,
    notebook: Path,
    start_lab: Callable[..., Server],
    screenshot: Callable[..., Path],
) -> None:
    server = start_lab(notebook.parent, recording="/some/where")
    lab_page.open_notebook(page, server, notebook.name)
    lab_page.run_all(page)
    expect_living_widgets(page)
    screenshot()
    assert lab_page.failures(lab_page.saved(page, server, notebook.name)) == []


def test_jupyterlab_shows_no_notification(
    page: Page, notebook: Path, start_lab: Callable[..., Server]
) -> None:
    """Unasked, JupyterLab offers its news and looks for a newer version of itself."""
    server = start_lab(notebook.parent, recording="/some/where")
    lab_page.open_notebook(page, server, notebook.name)
    page.wait_for_timeout(2000)
    assert page.locator(".jp-toastContainer .Toastify__toast").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_voila_renders_living_widgets(
    page: Page,
    notebook: Path,
    start_voila: Callable[..., Server],
    screenshot: Callable[..., Path],
    theme: str,
) -> None:
    server = start_voila(notebook, recording="/some/where")
    page.goto(server.page(theme=theme))
    expect_living_widgets(page)
    expect(page.locator("#loading")).to_have_count(0)
    screenshot()
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    channels = [int(part) for part in background[4:-1].split(",")]
    assert (sum(channels) < 3 * 128) == (theme == "dark")


def test_the_watch_sees_errors_and_requests_to_other_hosts(browser: Browser) -> None:
    """Without this the other tests could pass because nobody looks."""
    watch = Watch()
    page = browser.new_page()
    watch.attach(page)
    page.goto("data:text/html,<title>empty</title>")
    page.evaluate("fetch('http://example.invalid/x').catch(() => 0)")
    page.evaluate("console.error('seen'); setTimeout(() => { throw new Error('thrown'); })")
    page.wait_for_timeout(500)
    page.close()
    assert watch.outside == ["http://example.invalid/x"]
    text = "\n".join(watch.errors)
    assert "seen" in text
    assert "uncaught: thrown" in text
