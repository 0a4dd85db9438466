"""The served dashboard in Chromium: what one view does, the others follow."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import maiprof_nb
from maiprof_widgets.figures.theme import DARK
from tests.browser import dashboard_page as dashboard
from tests.browser.conftest import SIZE
from tests.browser.servers import REPO, Server
from tests.browser.watching import Watch

NOTEBOOK = REPO / "notebooks" / "dashboards" / "overview.ipynb"
EVIL = '<img src=x onerror="window.broken=1">'
SCRIPT = "</script><script>window.broken=1</script>"
ANSI = "\x1b[31mred\x1b[0m"


@pytest.fixture(scope="module")
def before(samples: Path) -> Path:
    return samples / "case_study" / "before"


@pytest.fixture(scope="module")
def seconds(before: Path) -> float:
    """Length of the recording as the loader says."""
    return maiprof_nb.load(before).span.dur_ns / 1e9


@pytest.fixture(scope="module")
def server(before: Path, start_voila: Callable[..., Server]) -> Server:
    return start_voila(NOTEBOOK, recording=str(before))


@pytest.fixture(scope="module")
def living(browser: Browser, server: Server) -> Iterator[tuple[Page, Watch]]:
    """One page for the tests that leave it usable: each further one would start a kernel."""
    watch = Watch()
    context = browser.new_context(viewport=SIZE, reduced_motion="reduce")
    context.on("page", watch.attach)
    context.set_default_timeout(20_000)
    page = context.new_page()
    dashboard.open_dashboard(page, server)
    yield page, watch
    context.close()


@pytest.fixture
def opened(living: tuple[Page, Watch]) -> Iterator[Page]:
    """The sample as it opens: whole, nothing chosen."""
    page, watch = living
    if "case_study/before" not in dashboard.title(page).inner_text():
        dashboard.choose_sample(page, "case study, as found")
        expect(dashboard.title(page)).to_contain_text("case_study/before")
        dashboard.wait_until_drawn(page)
    dashboard.show_everything(page)
    yield page
    watch.assert_clean()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_drag_in_the_utilisation_moves_memory_and_table(
    page: Page,
    server: Server,
    seconds: float,
    theme: str,
    screenshot: Callable[..., Path],
) -> None:
    """In both themes: the dark one repaints the plot after its start."""
    dashboard.open_dashboard(page, server, theme=theme)
    expect(dashboard.sentence(page)).to_contain_text("the whole recording")
    expect(dashboard.caption(page)).to_contain_text("in the whole recording")
    page.wait_for_timeout(700)  # the dark colours arrive
    dashboard.drag_in_plot(page, 0.25, 0.5)
    expect(dashboard.sentence(page)).to_contain_text("from")
    expect(dashboard.caption(page)).to_contain_text("in the window shown")
    first, last = dashboard.range_of_plot(page)
    assert first == pytest.approx(0.25 * seconds, rel=0.02)
    assert last == pytest.approx(0.50 * seconds, rel=0.02)
    slack = (last - first) * 0.02
    assert dashboard.moment_in_memory(page, 0.005) == pytest.approx(first, abs=slack)
    assert dashboard.moment_in_memory(page, 0.995) == pytest.approx(last, abs=slack)
    screenshot()


def test_every_plot_turns_dark(page: Page, server: Server, before: Path) -> None:
    """The page says so before a plot listens: what is sent to it then is lost, and said again."""
    page.goto(server.page(theme="dark", recording=str(before / "gpu.csv")))
    expect(page.locator(".js-plotly-plot .main-svg").nth(1)).to_be_visible(timeout=60_000)
    page.wait_for_function(
        "wanted => { const plots = [...document.querySelectorAll('.js-plotly-plot')];"
        " return plots.length === 2 && plots.every(p => p._fullLayout.font.color === wanted); }",
        arg=DARK.text,
    )


def test_time_axes_of_plot_and_memory_stand_in_line(opened: Page) -> None:
    left, right = opened.evaluate(
        f"(() => {{ const g = {dashboard.PLOT}, s = g._fullLayout._size;"
        " const x = g.getBoundingClientRect().left + s.l; return [x, x + s.w]; })()"
    )
    assert dashboard.canvas_point(opened, 0, 0)[0] == pytest.approx(left, abs=1)
    assert dashboard.canvas_point(opened, 1, 0)[0] == pytest.approx(right, abs=1)


def test_a_wheel_in_the_memory_moves_the_utilisation_and_double_click_resets(
    opened: Page, seconds: float
) -> None:
    x, y = dashboard.canvas_point(opened, 0.5, 0.3)
    opened.mouse.move(x, y)
    opened.mouse.wheel(0, -240)  # exp(-0.48) of the width, kept in the middle
    narrow = seconds * 2.718281828**-0.48
    opened.wait_for_function(
        f"wanted => {{ const r = {dashboard.PLOT}._fullLayout.xaxis.range;"
        " return Math.abs(r[1] - r[0] - wanted) < wanted * 0.02; }",
        arg=narrow,
    )
    dashboard.double_click_plot(opened)
    expect(dashboard.sentence(opened)).to_contain_text("the whole recording")
    assert dashboard.range_of_plot(opened) == pytest.approx([0, seconds], abs=seconds * 0.01)
    assert dashboard.moment_in_memory(opened, 0.995) == pytest.approx(seconds, rel=0.02)


def test_a_chosen_row_is_marked_in_the_timeline(
    opened: Page,
) -> None:
    assert dashboard.marks(opened) == 0
    row = dashboard.rows(opened).filter(has_text="Optimizer.step#AdamW.step")
    row.click()
    opened.wait_for_function(f"{dashboard.PLOT}._fullData.find(t => t.name === 'marks').x?.length")
    # 48 steps by the sample's README, each with one call: three points a mark
    assert dashboard.marks(opened) == 48 * 3
    titles = opened.locator(".maiprof-curves .annotation-text")
    expect(titles.filter(has_text="calls of Optimizer.step#AdamW.step")).to_have_count(1)
    expect(opened.locator(".maiprof-chosen")).to_contain_text("48 calls")
    row.click()
    expect(opened.locator(".maiprof-chosen")).to_have_count(0)
    opened.wait_for_function(f"!{dashboard.PLOT}._fullData.find(t => t.name === 'marks').x?.length")


def test_a_chosen_band_shows_its_stack(opened: Page) -> None:
    opened.mouse.click(*dashboard.canvas_point(opened, 0.5, 0.2))
    panel = opened.locator(".mp-panel")
    # the floor of this sample is the model (sample_traces/README.md)
    expect(panel).to_contain_text("build_model")
    assert ".py:" in panel.locator(".mp-frames").first.inner_text()


def test_the_table_searches_and_sorts(opened: Page) -> None:
    opened.locator(".maiprof-ranking .dt-search input").fill("aten::add")
    expect(dashboard.rows(opened).first).to_contain_text("aten::add")
    names = dashboard.rows(opened).locator("td:first-child").all_inner_texts()
    assert names
    assert all("aten::add" in name for name in names)
    opened.locator(".maiprof-ranking .dt-search input").fill("")
    calls = opened.locator(".maiprof-ranking .dt-scroll-head th", has_text="Calls")
    calls.get_by_text("Calls").click()  # the name sorts as well as the arrow beside it
    expect(calls).to_have_attribute("aria-sort", re.compile("ending"))
    if calls.get_attribute("aria-sort") == "ascending":
        calls.get_by_role("button").click()
    expect(calls).to_have_attribute("aria-sort", "descending")
    shown = dashboard.rows(opened).locator("td:nth-child(3)").all_inner_texts()
    counts = [int(re.sub(r"\D", "", text)) for text in shown]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1]


def test_gpu_metrics_unfold_and_follow(opened: Page) -> None:
    dashboard.fold_button(opened).click()
    metrics = opened.locator(".maiprof-folded .js-plotly-plot")
    expect(metrics).to_be_visible()
    dashboard.drag_in_plot(opened, 0.2, 0.4)
    expect(dashboard.sentence(opened)).to_contain_text("from")
    wanted = dashboard.range_of_plot(opened)
    opened.wait_for_function(
        "wanted => { const g = document.querySelector('.maiprof-folded .js-plotly-plot');"
        " return Math.abs(g._fullLayout.xaxis.range[0] - wanted) < 0.01; }",
        arg=wanted[0],
    )


def test_no_button_offers_to_send_data_elsewhere(opened: Page) -> None:
    """Plotly shows one that uploads the chart, unless it is told not to."""
    buttons = opened.evaluate(
        "[...document.querySelectorAll('.modebar-btn')].map(b => b.dataset.title)"
    )
    assert "Reset axes" in buttons
    assert not [name for name in buttons if "hare" in name or "loud" in name]


def test_another_sample_from_the_list(opened: Page) -> None:
    chosen = opened.locator(".maiprof-start select option:checked").first
    expect(chosen).to_contain_text("case study, as found")
    dashboard.choose_sample(opened, "memory leak")
    expect(dashboard.title(opened)).to_contain_text("leak")
    dashboard.wait_until_drawn(opened)
    expect(opened.locator(".maiprof-badge")).to_have_text("SIMULATED")
    expect(opened.locator(".maiprof-dashboard")).to_have_count(1)


def test_the_address_names_a_sample(page: Page, server: Server) -> None:
    dashboard.open_dashboard(page, server, recording="leak")
    expect(dashboard.title(page)).to_contain_text("leak")


def test_a_wrong_path_is_one_sentence_and_keeps_what_is_shown(opened: Page, before: Path) -> None:
    dashboard.open_path(opened, str(before / "nowhere.json"))
    problem = opened.locator(".maiprof-start > .widget-html .maiprof-status")
    expect(problem).to_contain_text("there is no such file")
    assert "Traceback" not in opened.locator("body").inner_text()
    expect(dashboard.title(opened)).to_contain_text("case_study/before")
    dashboard.drag_in_plot(opened, 0.3, 0.6)  # and it still lives
    expect(dashboard.sentence(opened)).to_contain_text("from")


def test_a_path_outside_the_served_folder_is_refused(
    page: Page, server: Server, samples: Path, tmp_path: Path
) -> None:
    """Though the server's user may read it, and whether or not it exists."""
    inside = samples / "case_study" / "before" / "gpu.csv"
    secret = tmp_path / "gpu.csv"
    secret.write_bytes(inside.read_bytes())
    page.goto(server.page(recording=str(secret)))
    problem = page.locator(".maiprof-start .maiprof-status")
    expect(problem).to_contain_text("does not show that place", timeout=60_000)
    expect(page.locator(".maiprof-empty")).to_be_visible()
    for path in ("/etc/hostname", f"{inside.parent}/../../../../etc/hostname", "https://a.test/b"):
        dashboard.open_path(page, path)
        expect(problem).to_contain_text(path.rsplit("/", maxsplit=1)[-1])
        expect(problem).to_contain_text("does not show that place")
    dashboard.open_path(page, str(inside))
    expect(dashboard.title(page)).to_contain_text("gpu.csv")


def test_a_large_upload_arrives(opened: Page, before: Path, tmp_path: Path) -> None:
    """Larger than the 10 MB at which a server would close the connection without a word."""
    plain = tmp_path / "mine.json"
    plain.write_bytes(gzip.decompress((before / "rank0.pt.trace.json.gz").read_bytes()))
    assert plain.stat().st_size > 12_000_000
    opened.get_by_role("tab", name="Upload").click()
    opened.locator("input[type=file]").set_input_files(plain)
    expect(dashboard.title(opened)).to_contain_text("mine.json", timeout=60_000)
    dashboard.wait_until_drawn(opened)
    # the same steps as in the sample it was unpacked from
    expect(opened.locator(".maiprof-tiles")).to_contain_text("48 steps")


def hostile_trace() -> bytes:
    """A small trace in which everything that has a name has an evil one."""
    names = [f"op {EVIL}", f"op {SCRIPT}", f"op {ANSI}", "op \"'`&lt;b&gt;"]
    complete = {"ph": "X", "pid": 7, "tid": 7}
    events = [
        {"ph": "M", "name": "thread_name", "pid": 7, "tid": 7, "args": {"name": f"thread {EVIL}"}},
        {"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "args": {"name": SCRIPT}},
        {**complete, "cat": "user_annotation", "name": "ProfilerStep#1", "ts": 0, "dur": 100},
        {**complete, "cat": "user_annotation", "name": f"range {EVIL}", "ts": 1, "dur": 98},
    ]
    for number, name in enumerate(names):
        args = {"External id": number + 1}
        at = {"ts": 10 + 20 * number, "dur": 10}
        events.append({**complete, "cat": "cpu_op", "name": name, **at, "args": args})
        launch = {"name": "cudaLaunchKernel", "cat": "cuda_runtime"}
        linked = {"args": {"correlation": number + 1, "External id": number + 1}}
        events.append({**complete, **launch, "ts": at["ts"] + 1, "dur": 2, **linked})
        kernel = {"ph": "X", "pid": 0, "tid": 7, "cat": "kernel", "name": f"kernel {EVIL}"}
        where = {"device": 0, "stream": 7, **linked["args"]}
        events.append({**kernel, "ts": at["ts"] + 4, "dur": 9, "args": where})
    header = {"deviceProperties": [{"id": 0, "name": f"GPU {EVIL}"}], "schemaVersion": 1}
    return json.dumps({**header, "traceEvents": events}).encode()


def test_evil_names_are_text_everywhere(opened: Page) -> None:
    metrics = (
        "timestamp, index, name, utilization.gpu [%], memory.used [MiB]\n"
        f"2026/03/02 09:00:00.000, 0, {EVIL}, 40 %, 100 MiB\n"
        f"2026/03/02 09:00:01.000, 0, {EVIL}, 50 %, 100 MiB\n"
    )
    opened.get_by_role("tab", name="Upload").click()
    opened.locator("input[type=file]").set_input_files(
        [
            {
                "name": f"{EVIL}.json",
                "mimeType": "application/json",
                "buffer": hostile_trace(),
            },
            {"name": f"{EVIL}.csv", "mimeType": "text/csv", "buffer": metrics.encode()},
        ]
    )
    expect(dashboard.title(opened)).to_contain_text("uploaded files")
    dashboard.wait_until_drawn(opened)
    expect(opened.locator(".maiprof-header .maiprof-sub")).to_contain_text(EVIL)
    for text in opened.locator(".maiprof-sources summary").all():
        text.click()
    expect(opened.locator(".maiprof-sources table").first).to_contain_text(EVIL)
    for name in (EVIL, SCRIPT, "\N{REPLACEMENT CHARACTER}[31mred"):
        row = dashboard.rows(opened).filter(has_text=f"op {name}")
        row.click()
        expect(opened.locator(".maiprof-chosen")).to_contain_text(name)
    dashboard.fold_button(opened).click()
    expect(opened.locator(".maiprof-folded .main-svg").first).to_be_visible()
    for plot in opened.locator(".js-plotly-plot").all():
        plot.hover(position={"x": 400, "y": 90})
        opened.wait_for_timeout(150)
    assert opened.evaluate("window.broken") is None
    assert opened.locator("#rendered_cells img").count() == 0
    assert not opened.evaluate(
        "[...document.scripts].some(script => script.textContent.includes('window.broken'))"
    )
    assert "\x1b" not in opened.locator("body").inner_text()


def test_the_tree_is_followed_down_and_other_things_are_ranked(opened: Page) -> None:
    ranking = opened.locator(".maiprof-ranking")
    ranking.locator(".dt-search input").fill("ProfilerStep*")
    dashboard.rows(opened).first.locator("td").first.click()
    tree = ranking.locator(".maiprof-call-tree")
    expect(tree).to_contain_text("It calls")
    tree.get_by_role("button", name="aten::item").click()
    expect(opened.locator(".maiprof-chosen")).to_contain_text("aten::item")
    expect(tree).to_contain_text("calls through ProfilerStep*")
    tree.get_by_role("button", name="ProfilerStep*").click()
    expect(opened.locator(".maiprof-chosen")).to_contain_text("ProfilerStep*")
    ranking.get_by_role("button", name="Kernels").click()
    expect(dashboard.caption(opened)).to_contain_text("Device work")
    expect(ranking.locator(".dt-scroll-head th", has_text="Grid")).to_be_visible()
    ranking.locator(".dt-search input").fill("")
    registers = ranking.locator(".dt-scroll-head th", has_text="Registers")
    registers.get_by_text("Registers").click()
    expect(registers).to_have_attribute("aria-sort", re.compile("ending"))
    if registers.get_attribute("aria-sort") == "ascending":
        registers.get_by_role("button").click()
    expect(registers).to_have_attribute("aria-sort", "descending")
    column = registers.evaluate("th => th.cellIndex") + 1
    shown = dashboard.rows(opened).locator(f"td:nth-child({column})").all_inner_texts()
    counts = [int(text) for text in shown if text]  # as numbers: 96 is less than 146
    assert counts == sorted(counts, reverse=True)
    assert len({len(str(one)) for one in counts}) > 1  # else text would sort the same
    dashboard.rows(opened).first.locator("td").first.click()
    expect(opened.locator(".maiprof-chosen")).to_contain_text("of all device work")
    opened.wait_for_function(f"() => {dashboard.PLOT}._fullData.some(t => t.name === 'marks')")
    ranking.get_by_role("button", name="Python functions").click()
    expect(dashboard.caption(opened)).to_contain_text("Python functions")
    ranking.get_by_role("button", name="Operators and ranges").click()
    expect(dashboard.caption(opened)).to_contain_text("Operators and named ranges")
    dashboard.show_everything(opened)
