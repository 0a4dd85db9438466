"""JupyterLab as a person uses it: open a notebook, run all of it, read what came out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.servers import Server

RUN_TIMEOUT_MS = 180_000


def open_notebook(page: Page, server: Server, name: str, *, theme: str = "light") -> None:
    """Open ``name`` of the server's root and wait until its kernel is ready."""
    # Without the reset the tabs of the test before would come back.
    page.goto(server.page(f"lab/workspaces/maiprof/tree/{name}", reset=""))
    expect(page.locator(".jp-Notebook:visible")).to_be_visible(timeout=60_000)
    # Before this the toolbar says idle too, and running would ask which kernel is wanted.
    expect(page.get_by_role("button", name="| Idle")).to_be_visible(timeout=60_000)
    if theme == "dark":
        choose(page, "Settings", "Theme", "JupyterLab Dark")


def run_all(page: Page) -> None:
    """Run > Run All Cells, and wait until the kernel has nothing left to do."""
    choose(page, "Run", "Run All Cells")
    page.wait_for_timeout(500)  # the indicator needs a moment to leave "idle"
    wait_until_idle(page)


def wait_until_idle(page: Page) -> None:
    """Wait for the indicator in the notebook's toolbar."""
    page.locator('.jp-Notebook-ExecutionIndicator:visible[data-status="idle"]').wait_for(
        timeout=RUN_TIMEOUT_MS
    )


def choose(page: Page, menu: str, *entries: str) -> None:
    """Choose from the menu bar, going down through sub-menus."""
    page.locator(".lm-MenuBar-itemLabel", has_text=menu).first.click()
    for entry in entries:
        item = page.locator(".lm-Menu-itemLabel").get_by_text(entry, exact=True)
        item.last.hover()
        item.last.click()


def saved(page: Page, server: Server, name: str) -> dict[str, Any]:
    """Save the notebook and return what the file then holds: the truth about what was run."""
    path: Path = server.root / name
    before = path.stat().st_mtime_ns
    page.keyboard.press("Escape")
    page.keyboard.press("Control+s")
    for _ in range(100):
        if path.stat().st_mtime_ns != before:
            break
        page.wait_for_timeout(100)
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def failures(notebook: dict[str, Any]) -> list[str]:
    """Code cells that did not run, or ended in an error, each as one line."""
    found = []
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code" or not "".join(cell["source"]).strip():
            continue
        if cell["execution_count"] is None:
            found.append(f"cell {number} did not run")
        found += [
            f"cell {number}: {output['ename']}: {output['evalue']}"
            for output in cell["outputs"]
            if output["output_type"] == "error"
        ]
    return found
