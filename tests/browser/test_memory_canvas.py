"""The memory view's canvas in Chromium: a plain page, the ES module and a small model shim.

The shim's messages go to a real `MemoryView`, so both halves are tested together.
"""

from __future__ import annotations

import base64
import http.server
import json
import threading
from functools import partial
from importlib.resources import files

import pytest

from maiprof_nb.loading import registry, sources
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets.link import Selection
from maiprof_widgets.views.memory import MemoryView

pytestmark = pytest.mark.browser

SAWTOOTH = "memory/cs336-charan/memory_snapshot.pickle.gz"
TRAITS = ("about", "window_us", "moment_us", "selected", "lit", "theme", "height", "status")
PAGE = """<!doctype html><meta charset="utf-8"><title>memory</title><link rel="icon" href="data:,">
<link rel="stylesheet" href="views.css"><body style="margin:0">
<script type="module">
import view from "./module.js";
const state = await window.traits();
const listeners = {};
const fire = (event, ...values) => [...(listeners[event] ?? [])].forEach((f) => f(...values));
window.sizes = [];
window.take = ({traits, messages}) => {
  for (const [name, value] of Object.entries(traits)) {
    if (JSON.stringify(state[name]) === JSON.stringify(value)) continue;
    state[name] = value;
    fire("change:" + name);
  }
  for (const [content, buffers] of messages) {
    const binary = buffers.map((text) => {
      const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
      return new DataView(bytes.buffer);
    });
    window.sizes.push(binary.reduce((sum, b) => sum + b.byteLength, 0));
    fire("msg:custom", content, binary);
  }
};
const model = {
  get: (name) => state[name],
  on: (event, f) => (listeners[event] ??= []).push(f),
  off: (event, f) => { listeners[event] = (listeners[event] ?? []).filter((g) => g !== f); },
  send: async (content) => window.take(await window.ask(content)),
};
const host = document.createElement("div"); // notebooks render first and attach then
window.stop = view.render({ model, el: host });
document.body.append(host);
</script>"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        made = {
            "/page.html": ("text/html", PAGE),
            "/module.js": ("text/javascript", MemoryView._esm),  # as a notebook gets it
        }
        if self.path not in made:
            super().do_GET()
            return
        kind, text = made[self.path]
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(text.encode())


class Shown:
    """A view and the page that shows it."""

    def __init__(self, view, page):
        self.view, self.page, self.sent, self.asked = view, page, [], []
        view.send = lambda content, buffers=(): self.sent.append((content, buffers))
        page.expose_function("traits", self._traits)
        page.expose_function("ask", self._answer)

    def _traits(self):
        return json.loads(json.dumps({name: getattr(self.view, name) for name in TRAITS}))

    def _answer(self, content):
        self.asked.append(content)
        self.view._received(self.view, content, [])
        return self._news()

    def _news(self):
        messages = [
            [content, [base64.b64encode(bytes(b)).decode() for b in buffers]]
            for content, buffers in self.sent
        ]
        self.sent = []
        return {"traits": self._traits(), "messages": messages}

    def pull(self):
        """Let the page hear what changed in Python on its own."""
        self.page.evaluate("news => window.take(news)", self._news())

    def painted(self, at_least=1):
        self.page.wait_for_function(
            "n => Number(document.querySelector('.mp-memory')?.dataset.painted ?? 0) >= n",
            arg=at_least,
        )
        self.page.evaluate("() => new Promise(r => requestAnimationFrame(() => r()))")
        return int(self.page.get_attribute(".mp-memory", "data-painted"))

    def box(self):
        return self.page.locator("canvas.mp-canvas").bounding_box()


@pytest.fixture(scope="module")
def address():
    static = str(files("maiprof_widgets") / "static")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=static))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/page.html"
    server.shutdown()
    server.server_close()


@pytest.fixture
def show(context, watch, address):
    """Open a view in a page of its own, which may log no error and ask no other host."""

    def open_page(view, *, width=1280, scheme="light"):
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": 760})
        page.emulate_media(color_scheme=scheme)
        shown = Shown(view, page)
        page.goto(address)
        return shown

    yield open_page
    watch.assert_clean()


@pytest.fixture
def recorded(corpus):
    def session(name: str) -> Session:
        path = str(corpus / name)
        return Session([registry.read(sources.content(path)[0], path)])

    return session


@pytest.fixture
def sawtooth(show, recorded):
    shown = show(MemoryView(recorded(SAWTOOTH)))
    shown.painted()
    return shown


def test_first_picture_is_painted_and_bounded(sawtooth):
    view, page = sawtooth.view, sawtooth.page
    # the recorded peak of this file, by plain replay (see tests/analysis): 728.7 MiB
    assert "peak 729 MiB" in page.get_attribute("canvas.mp-canvas", "aria-label")
    inked = page.evaluate(
        """() => { const c = document.querySelector("canvas.mp-canvas");
        const d = c.getContext("2d").getImageData(100, 150, c.width - 150, 100).data;
        let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0;
        return n / (d.length / 4); }"""
    )
    assert inked > 0.9  # 500 MiB of 894 reserved are always allocated: the floor is solid
    assert max(page.evaluate("window.sizes")) < 250_000
    assert view.status == ""


def test_wheel_zooms_at_the_pointer_and_moves_the_link(sawtooth):
    box = sawtooth.box()
    before = sawtooth.view.window
    count = sawtooth.painted()
    sawtooth.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 150)
    sawtooth.page.mouse.wheel(0, -240)
    sawtooth.painted(count + 1)
    after = sawtooth.view.link.window
    assert after is not None
    assert before.start_ns < after.start_ns < after.end_ns < before.end_ns
    middle = (after.start_ns + after.end_ns) / 2
    assert abs(middle - before.dur_ns / 2) < before.dur_ns * 0.03


def test_drag_zooms_and_double_click_resets(sawtooth):
    box, count = sawtooth.box(), sawtooth.painted()
    mouse = sawtooth.page.mouse
    mouse.move(box["x"] + 300, box["y"] + 100)
    mouse.down()
    mouse.move(box["x"] + 500, box["y"] + 120, steps=4)
    mouse.up()
    count = sawtooth.painted(count + 1)
    whole, shown = sawtooth.view.session.window, sawtooth.view.link.window
    width = box["width"] - 62 - 14  # the canvas without its margins
    assert shown.dur_ns == pytest.approx(whole.dur_ns * 200 / width, rel=0.02)
    mouse.dblclick(box["x"] + 400, box["y"] + 100)
    sawtooth.painted(count + 1)
    assert sawtooth.view.link.window is None


def test_keys_zoom_pan_and_reset(sawtooth):
    count = sawtooth.painted()
    sawtooth.page.focus("canvas.mp-canvas")
    sawtooth.page.keyboard.press("+")
    count = sawtooth.painted(count + 1)
    zoomed = sawtooth.view.link.window
    sawtooth.page.keyboard.press("ArrowRight")
    count = sawtooth.painted(count + 1)
    moved = sawtooth.view.link.window
    assert moved.dur_ns == pytest.approx(zoomed.dur_ns, abs=2)
    assert moved.start_ns - zoomed.start_ns == pytest.approx(zoomed.dur_ns / 10, rel=0.01)
    sawtooth.page.keyboard.press("Escape")
    sawtooth.painted(count + 1)
    assert sawtooth.view.link.window is None


def test_follows_the_link_without_an_echo(sawtooth):
    count = sawtooth.painted()
    asked = len(sawtooth.asked)
    sawtooth.view.link.window = TimeWindow(100_000_000, 200_000_000)
    sawtooth.pull()
    sawtooth.painted(count + 1)
    news = sawtooth.asked[asked:]
    assert [(a["start_us"], a["end_us"], a["gesture"]) for a in news] == [(1e5, 2e5, False)]
    assert sawtooth.view.link.window == TimeWindow(100_000_000, 200_000_000)


def test_many_wheel_steps_send_few_requests_and_end_at_the_newest(sawtooth):
    box, asked = sawtooth.box(), len(sawtooth.asked)
    sawtooth.page.mouse.move(box["x"] + 600, box["y"] + 100)
    for _ in range(30):
        sawtooth.page.mouse.wheel(0, -60)
    sawtooth.page.wait_for_timeout(500)
    news = sawtooth.asked[asked:]
    assert 1 <= len(news) <= 31
    last = news[-1]
    assert sawtooth.view.window_us == [
        pytest.approx(last["start_us"], abs=1e-3),
        pytest.approx(last["end_us"], abs=1e-3),
    ]
    # thirty steps of exp(-0.12) each
    whole = sawtooth.view.session.window.dur_ns
    assert sawtooth.view.link.window.dur_ns == pytest.approx(whole * 2.718281828**-3.6, rel=0.02)


def test_hover_names_the_band_and_click_selects_it(sawtooth):
    box, page = sawtooth.box(), sawtooth.page
    page.mouse.move(box["x"] + 640, box["y"] + 250)
    page.wait_for_selector(".mp-tip .mp-frames")
    assert "MiB" in page.inner_text(".mp-tip strong")
    page.mouse.click(box["x"] + 640, box["y"] + 250)
    page.wait_for_selector(".mp-panel:not([hidden])")
    chosen = sawtooth.view.link.selection
    assert chosen.table == "allocations"
    assert chosen.recording == 0
    life = sawtooth.view.log.allocations.set_index("allocation").loc[chosen.row]
    assert bool(life["before_log"])  # the floor of this file is older than its log
    assert page.inner_text(".mp-panel strong").startswith(page.inner_text(".mp-tip strong"))
    page.click(".mp-panel button")
    page.wait_for_selector(".mp-panel", state="hidden")
    assert sawtooth.view.link.selection is None


def test_controls_change_axis_colours_and_what_is_lit(sawtooth):
    page, view = sawtooth.page, sawtooth.view
    count = sawtooth.painted()
    page.get_by_label("axis").select_option("event")
    count = sawtooth.painted(count + 1)
    assert view.axis == "event"
    assert "event" in page.get_attribute("canvas.mp-canvas", "aria-label")
    sawtooth.page.wait_for_function(
        "n => document.querySelector('.mp-memory').dataset.painted >= n", arg=count
    )
    page.get_by_label("colour by").select_option("category")
    page.wait_for_function("document.querySelector('.mp-legend').innerText.includes('% sure')")
    page.get_by_label("Search").fill("attention")
    page.wait_for_function("document.querySelector('.mp-lines').innerText.includes('attention')")
    # 192 MiB at the peak are of scaled_dot_product_attention, by plain search in the log
    log = view.log
    stacks = log.stacks[log.stacks["frames"].astype(str).str.contains("attention")]["stack"]
    state = int(log.allocated_bytes.argmax())
    lives = log.allocations
    living = lives[(lives["first_state"] <= state) & (lives["end_state"] > state)]
    size = int(living[living["stack"].isin(stacks)]["size_bytes"].sum()) // 2**20
    assert f"{size} MiB of its 729 MiB" in page.inner_text(".mp-lines")
    page.get_by_label("Search").fill(">10Xi")
    page.wait_for_selector(".mp-status:not([hidden])")
    assert "is no size" in page.inner_text(".mp-status")


def test_a_click_above_the_bands_marks_a_moment_and_ctrl_wheel_zooms_in_height(sawtooth):
    box, page = sawtooth.box(), sawtooth.page
    page.mouse.click(box["x"] + 62 + (box["width"] - 76) / 4, box["y"] + 40)
    page.wait_for_timeout(200)
    span = sawtooth.view.session.window
    assert sawtooth.view.link.moment_ns == pytest.approx(span.start_ns + span.dur_ns / 4, rel=0.01)
    assert sawtooth.view.link.selection is None
    count, asked = sawtooth.painted(), len(sawtooth.asked)
    page.mouse.move(box["x"] + 640, box["y"] + 290)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    sawtooth.painted(count + 1)
    last = sawtooth.asked[asked:][-1]
    assert last["rows"] > 1.5 * sawtooth.asked[0]["rows"]
    assert sawtooth.view.link.window is None  # time stays


def test_a_merged_band_says_how_many_it_stands_for(show, recorded):
    shown = show(MemoryView(recorded("memory/flexgen/oom_snapshot.pickle")))
    shown.painted()
    shown.page.mouse.move(shown.box()["x"] + 640, shown.box()["y"] + 320 - 38 - 15)
    shown.page.wait_for_selector(".mp-tip:not([hidden])")
    told = shown.page.inner_text(".mp-tip")
    assert "allocations from" in told
    assert "too small to draw one by one" in told


def test_selection_from_elsewhere_shows_its_stack(sawtooth):
    made = sawtooth.view.log.allocations.query("not before_log and stack.notna()")
    row = int(made["allocation"].iloc[10])
    sawtooth.view.link.selection = Selection("allocations", row=row)
    sawtooth.pull()
    sawtooth.page.wait_for_selector(".mp-panel:not([hidden])")
    assert ".py:" in sawtooth.page.inner_text(".mp-panel .mp-frames")


def test_python_errors_stand_under_the_view(sawtooth):
    sawtooth.page.evaluate(
        "() => window.ask({kind: 'band', view: 'x', allocation: 'seven'}).then(window.take)"
    )
    sawtooth.page.wait_for_selector(".mp-status:not([hidden])")
    text = sawtooth.page.inner_text(".mp-status")
    assert "could not" in text
    assert "Traceback" not in text


def test_nothing_recorded_says_how_to_record(show):
    shown = show(MemoryView(Session([])))
    text = shown.page.inner_text(".mp-empty")
    assert "_record_memory_history" in text
    assert "profile_memory=True" in text
    assert not shown.page.is_visible("canvas.mp-canvas")


def test_text_of_files_is_never_markup(show, recorded):
    view = MemoryView(recorded(SAWTOOTH))
    log = view.log
    evil = "<img src=x onerror=window.broken=1>"
    log.stacks["label"] = log.stacks["label"].cat.rename_categories(lambda text: evil + str(text))
    shown = show(view)
    shown.painted()
    shown.page.mouse.move(shown.box()["x"] + 640, shown.box()["y"] + 250)
    shown.page.wait_for_selector(".mp-tip:not([hidden])")
    assert evil in shown.page.inner_text(".mp-legend")
    assert shown.page.evaluate("window.broken") is None
    assert shown.page.locator(".mp-memory img").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_theme_of_the_system_without_jupyter(show, recorded, scheme):
    shown = show(MemoryView(recorded(SAWTOOTH)), scheme=scheme)
    shown.painted()
    colour = shown.page.evaluate(
        "getComputedStyle(document.querySelector('.mp-memory')).backgroundColor"
    )
    assert colour == {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 25, 29)"}[scheme]
    strongest = shown.page.evaluate(
        """() => { const c = document.querySelector("canvas.mp-canvas");
        const d = c.getContext("2d").getImageData(0, 0, c.width, 40).data;
        let low = 255, high = 0;
        for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 150) {
          low = Math.min(low, d[i]); high = Math.max(high, d[i]); }
        return [low, high]; }"""
    )
    # the line of what is reserved is drawn in the theme's ink: #1f2328 or #e6e8eb
    assert strongest[0] < 0x40 if scheme == "light" else strongest[1] > 0xC0
