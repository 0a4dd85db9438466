"""Progress on a terminal, and silence elsewhere."""

from __future__ import annotations

import io

import pytest

from maiprof_nb.cli import _progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr("maiprof_nb.cli._progress.time.monotonic", lambda: now[0])
    return now


def test_a_pipe_hears_nothing() -> None:
    out = io.StringIO()
    with _progress.shown("a.json", out) as report:
        assert report is None
    assert out.getvalue() == ""


def test_the_first_second_is_silent(clock: list[float]) -> None:
    out = Terminal()
    with _progress.shown("a.json", out) as report:
        assert report is not None
        clock[0] = 0.9
        report(0.5)
    assert out.getvalue() == ""


def test_a_long_load_is_one_line_that_goes_away(clock: list[float]) -> None:
    out = Terminal()
    with _progress.shown("a\x1b[31m.json", out) as report:
        assert report is not None
        for second, share in ((2.0, 0.2), (2.1, 0.21), (4.0, 0.4)):
            clock[0] = second
            report(share)
    text = out.getvalue()
    assert "20 %, about 8 s left" in text  # a fifth in 2 s: four fifths in 8 s
    assert "40 %, about 6 s left" in text
    assert "21 %" not in text  # not more often than people read
    assert "\n" not in text
    assert "\x1b[31m" not in text  # names from outside do not steer the terminal
    assert text.endswith("\r\x1b[K")


def test_what_stops_the_load_leaves_no_line(clock: list[float]) -> None:
    out = Terminal()

    def stopped() -> None:
        with _progress.shown("a.json", out) as report:
            assert report is not None
            clock[0] = 2.0
            report(0.5)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert "50 %" in out.getvalue()
    assert out.getvalue().endswith("\r\x1b[K")
