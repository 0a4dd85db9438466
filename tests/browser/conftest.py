"""Fixtures for tests in headless Chromium against real servers."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import playwright as playwright_package
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.browser.servers import Server, jupyterlab, voila
from tests.browser.watching import Watch

HERE = Path(__file__).parent
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
    # A request to another host fails at once instead of waiting for a network.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]
expect.set_options(timeout=20_000)  # the machine may be busy with other tests
SIZE = {"width": 1400, "height": 1000}


@pytest.hookimpl(tryfirst=True)  # before xdist deals them out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is in this folder, and keep it on one worker: the servers are started once."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of the browser, or a skip that says how to get one."""
    path = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    if not Path(path).exists():
        pytest.skip(f"no Chromium at {path}: apt-get install chromium, or set CHROMIUM")
    return path


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    _require_driver()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()


def _require_driver() -> None:
    """Skip where Playwright's own program cannot start, which it would not explain itself."""
    program = Path(playwright_package.__file__).parent / "driver" / "node"
    if not program.exists():  # named otherwise on other systems
        return
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"Playwright cannot start: {done.stderr.strip()}: apt-get install libatomic1")


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def context(browser: Browser, watch: Watch) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport=SIZE, reduced_motion="reduce")
    context.on("page", watch.attach)
    context.set_default_timeout(30_000)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext, watch: Watch) -> Iterator[Page]:
    """A page that may neither log an error nor ask another host, from its first to its last."""
    yield context.new_page()
    watch.assert_clean()


@pytest.fixture
def screenshot(
    page: Page, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Take a picture of the page: into MAIPROF_SCREENSHOTS, else into a temporary folder."""
    wanted = os.environ.get("MAIPROF_SCREENSHOTS")
    folder = Path(wanted) if wanted else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)

    def take(name: str = "") -> Path:
        stem = re.sub(r"[^\w.-]+", "-", f"{request.node.name}-{name}".strip("-"))
        path = folder / f"{stem}.png"
        page.screenshot(path=path)
        return path

    return take


@pytest.fixture(scope="session")
def start_lab(
    chromium: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Server]]:
    """Start JupyterLab on a folder of notebooks, once a folder and recording.

    ``start_lab(root, recording="...")``; the server's kernels are the running Python's.
    """
    with ExitStack() as stack:
        running: dict[tuple[Path, str], Server] = {}

        def start(root: Path, *, recording: str = "") -> Server:
            key = (root, recording)
            if key not in running:
                home = tmp_path_factory.mktemp("lab-home")
                running[key] = stack.enter_context(jupyterlab(root, home, recording=recording))
            return running[key]

        yield start


@pytest.fixture(scope="session")
def start_voila(
    chromium: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Server]]:
    """Start Voila on a notebook, once a notebook and recording: ``start_voila(path)``."""
    with ExitStack() as stack:
        running: dict[tuple[Path, str], Server] = {}

        def start(notebook: Path, *, recording: str = "") -> Server:
            key = (notebook, recording)
            if key not in running:
                home = tmp_path_factory.mktemp("voila-home")
                running[key] = stack.enter_context(voila(notebook, home, recording=recording))
            return running[key]

        yield start
