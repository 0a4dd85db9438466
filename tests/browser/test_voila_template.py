"""What a visitor of the served dashboard can see and cannot do."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import nbformat
import psutil
import pytest
from playwright.sync_api import Page, expect

from tests.browser.servers import Server, voila


def write_notebook(folder: Path, *sources: str) -> Path:
    path = folder / "page.ipynb"
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, start_voila: Callable[..., Server]) -> Server:
    notebook = write_notebook(tmp_path_factory.mktemp("page"), "print('all is well')")
    return start_voila(notebook)


def get(server: Server, path: str) -> tuple[int, str, dict[str, str]]:
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, body, dict(answer.getheaders())


def kernels(server: Server) -> int:
    return sum(map(is_kernel, psutil.Process(server.pid).children()))


def is_kernel(process: psutil.Process) -> bool:
    try:
        return "ipykernel_launcher" in process.cmdline()
    except psutil.Error:  # it ended just now
        return False


def test_the_page_names_no_other_host(server: Server) -> None:
    """Neither MathJax, require.js nor an icon font: the usual template links to all three."""
    _, body, headers = get(server, "/")
    assert "all is well" in body
    assert "//cdn" not in body
    assert 'src="http' not in body
    assert 'href="http' not in body
    assert "default-src 'self'" in headers["Content-Security-Policy"]


def test_a_visitor_cannot_choose_the_template(server: Server) -> None:
    """``reveal`` is one that Voila brings; it would load from a CDN."""
    _, body, _ = get(server, "/?template=reveal")
    assert "Reveal.initialize" not in body
    assert 'id="loading_text"' in body


def test_a_theme_is_light_or_dark_and_never_markup(server: Server) -> None:
    status, body, _ = get(server, "/?theme=%22%3E%3Cscript%3Ealert(1)%3C/script%3E")
    assert status == http.client.OK
    assert "alert(1)" not in body
    assert 'data-jp-theme-name="JupyterLab Light"' in body


def test_files_beside_the_notebook_are_not_served(server: Server) -> None:
    (server.root / "secret.png").write_bytes(b"secret")
    status, body, _ = get(server, "/voila/files/secret.png")
    assert status == http.client.FORBIDDEN
    assert "secret" not in body


def test_another_name_for_this_machine_is_refused(server: Server) -> None:
    """Else a page of any site could reach the server by a name that it lets point here."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=10)
    connection.request("GET", "/", headers={"Host": "evil.example"})
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    assert answer.status == http.client.FORBIDDEN
    assert "The dashboard could not be opened" in body
    assert "//cdn" not in body  # the usual page of errors loads an icon font


def test_an_error_is_a_sentence(
    page: Page,
    tmp_path: Path,
    start_voila: Callable[..., Server],
    screenshot: Callable[..., Path],
) -> None:
    """Nothing of the traceback goes to the visitor; it is in the server's log."""
    notebook = write_notebook(
        tmp_path, "raise RuntimeError('inner detail')", "print('not reached')"
    )
    server = start_voila(notebook)
    page.goto(server.page())
    expect(page.get_by_text("the window that the dashboard was started from")).to_be_visible()
    screenshot()
    assert "inner detail" not in page.content()
    assert "inner detail" in server.log.read_text()


def test_a_closed_tab_ends_its_kernel(page: Page, tmp_path: Path) -> None:
    notebook = write_notebook(tmp_path, "import ipywidgets", "ipywidgets.Label('here')")
    home = tmp_path / "home"
    home.mkdir()
    soon = {"MappingKernelManager": {"cull_idle_timeout": 3, "cull_interval": 1}}
    with voila(notebook, home, recording="", changes=soon) as server:
        page.goto(server.page())
        expect(page.get_by_text("here", exact=True)).to_be_visible()
        page.wait_for_timeout(6000)
        assert kernels(server) == 1, "the kernel of an open page was ended"
        page.goto("about:blank")
        deadline = time.monotonic() + 30
        while kernels(server) and time.monotonic() < deadline:
            time.sleep(0.5)
        assert kernels(server) == 0
