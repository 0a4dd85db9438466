"""What a page did that it must not do: errors in its console, requests that leave the machine."""

from __future__ import annotations

from urllib.parse import urlsplit

from playwright.sync_api import ConsoleMessage, Error, Page, Request, WebSocket

LOOPBACK = {"127.0.0.1", "localhost", "::1"}
WITHOUT_HOST = {"data", "blob", "about", "chrome-error"}


class Watch:
    """Collects what every page of a browser context complains about and asks for."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        self.outside: list[str] = []
        self.requests = 0

    def attach(self, page: Page) -> None:
        """Listen to ``page`` from its first request on."""
        page.on("console", self._console)
        page.on("pageerror", self._page_error)
        page.on("request", self._request)
        page.on("websocket", self._websocket)

    def assert_clean(self) -> None:
        """Fail with everything that was seen."""
        assert not self.outside, f"requests left the machine: {self.outside}"
        assert not self.errors, "the console shows errors:\n" + "\n".join(self.errors)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(f"{message.text} ({message.location.get('url', '')})")

    def _page_error(self, error: Error) -> None:
        self.errors.append(f"uncaught: {error}")

    def _request(self, request: Request) -> None:
        self.requests += 1
        self._note(request.url)

    def _websocket(self, websocket: WebSocket) -> None:
        self._note(websocket.url)

    def _note(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in WITHOUT_HOST and parts.hostname not in LOOPBACK:
            self.outside.append(url)
