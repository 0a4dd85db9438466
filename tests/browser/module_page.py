"""One anywidget view on a plain page: its real ES module, a small model, its real Python half."""

from __future__ import annotations

import base64
import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.resources import files
from typing import Any

from playwright.sync_api import Page

_BASE = ("layout", "tabbable", "tooltip")
PAGE = """<!doctype html><meta charset="utf-8"><title>view</title><link rel="icon" href="data:,">
<link rel="stylesheet" href="views.css"><link rel="stylesheet" href="own.css">
<body style="margin:0">
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
const changed = {};
const model = {
  get: (name) => state[name],
  set: (name, value) => { state[name] = value; changed[name] = value; },
  save_changes: async () => window.take(await window.put({...changed})),
  on: (event, f) => (listeners[event] ??= []).push(f),
  off: (event, f) => { listeners[event] = (listeners[event] ?? []).filter((g) => g !== f); },
  send: async (content) => window.take(await window.ask(content)),
};
const host = document.createElement("div"); // notebooks render first and attach then
window.stop = view.render({ model, el: host });
document.body.append(host);
</script>"""


class Shown:
    """A view and the page that shows it."""

    def __init__(self, view: Any, page: Page, address: str) -> None:
        self.view, self.page = view, page
        self.sent: list[tuple[Any, list[bytes]]] = []
        view.send = lambda content, buffers=(): self.sent.append((content, list(buffers)))
        self.names = [
            name for name in view.traits(sync=True) if name[0] != "_" and name not in _BASE
        ]
        page.expose_function("traits", self._traits)
        page.expose_function("ask", self._answer)
        page.expose_function("put", self._put)
        page.goto(address)
        page.wait_for_function("() => document.querySelector('.maiprof')?.dataset.painted")

    def _traits(self) -> Any:
        return json.loads(json.dumps({name: getattr(self.view, name) for name in self.names}))

    def _answer(self, content: Any) -> Any:
        self.view._received(self.view, content, [])
        return self._news()

    def _news(self) -> Any:
        messages = [
            [content, [base64.b64encode(bytes(b)).decode() for b in buffers]]
            for content, buffers in self.sent
        ]
        self.sent = []
        return {"traits": self._traits(), "messages": messages}

    def _put(self, values: dict[str, Any]) -> Any:
        for name, value in values.items():
            setattr(self.view, name, value)
        return self._news()

    def pull(self) -> None:
        """Let the page hear what changed in Python on its own."""
        self.page.evaluate("news => window.take(news)", self._news())
        self.settle()

    def settle(self) -> None:
        """Wait for the next picture."""
        self.page.evaluate(
            "() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r())))"
        )


@contextmanager
def served(module: str, styles: str = "") -> Iterator[str]:
    """The address of a page with this ES module, and a style sheet of its own."""

    class Pages(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            made = {
                "/page.html": ("text/html", PAGE),
                "/module.js": ("text/javascript", module),
                "/own.css": ("text/css", styles),
            }
            if self.path not in made:
                super().do_GET()
                return
            kind, text = made[self.path]
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(text.encode())

    static = str(files("maiprof_widgets") / "static")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Pages, directory=static))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/page.html"
    finally:
        server.shutdown()
        server.server_close()
