"""The findings view's Python half, without a browser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import maiprof_nb
from maiprof_nb.findings.diagnosis import diagnose
from maiprof_nb.findings.finding import FOUND, Finding
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets.link import LinkState, Selection
from maiprof_widgets.views import _finding_words as words
from maiprof_widgets.views.findings import FindingsView

RULES = ["input-bound", "fp32-matmul", "slow-step", "launch-bound", "exposed-communication"]


@pytest.fixture(scope="module")
def before(samples: Path) -> Session:
    return maiprof_nb.load(samples / "case_study" / "before")


@pytest.fixture(scope="module")
def shown(before: Session) -> FindingsView:
    return FindingsView(before, LinkState(), rules=RULES)


def number_of(view: FindingsView, rule: str) -> Finding:
    return next(one for one in view.findings if one.rule == rule)


def test_the_cards_are_what_diagnose_says_in_its_order(
    shown: FindingsView, before: Session
) -> None:
    found = diagnose(before, rules=RULES)
    assert [card["rule"] for card in shown.cards] == [one.rule for one in found]
    assert shown.cards[0]["title"] == found[0].title
    assert shown.headline.startswith(
        f"{sum(one.outcome == FOUND for one in found)} things cost time or memory:"
    )
    json.dumps(shown.cards)  # as they travel to the browser


def test_a_card_says_cost_change_and_gain(shown: FindingsView) -> None:
    card = next(card for card in shown.cards if card["rule"] == "input-bound")
    assert card["severity"] == "high"
    assert card["cost"] == "Costs 628 ms a step, 65.0 % of the time"  # 30.2 s of 46.4 s in 48 steps
    assert card["change"] == "1 line"


def test_what_does_not_apply_says_why(shown: FindingsView) -> None:
    card = next(card for card in shown.cards if card["rule"] == "exposed-communication")
    assert card["outcome"] == "not-applicable"
    assert "No collective" in card["reason"]


def test_a_gap_is_shown_with_some_margin(shown: FindingsView) -> None:
    row = number_of(shown, "input-bound").evidence[0]
    shown._received(shown, {"kind": "evidence", "rule": "input-bound", "row": 0}, [])
    window = shown.link.window
    assert isinstance(window, TimeWindow)
    assert window.start_ns < row["ts_ns"]
    assert window.end_ns > row["ts_ns"] + row["dur_ns"]
    assert window.dur_ns == pytest.approx(1.5 * row["dur_ns"])


def test_a_named_row_is_selected(shown: FindingsView) -> None:
    row = number_of(shown, "fp32-matmul").evidence[0]
    shown._received(shown, {"kind": "evidence", "rule": "fp32-matmul", "row": 0}, [])
    assert shown.link.selection == Selection(
        "operators", name=row["name"], recording=row["recording"]
    )


@pytest.mark.parametrize(
    "message", ["x", {"kind": "evidence", "rule": "none", "row": 0},
                {"kind": "evidence", "rule": "input-bound", "row": 10**6}],
)  # fmt: skip
def test_a_message_that_means_nothing_changes_nothing(shown: FindingsView, message: object) -> None:
    before = shown.link.window
    shown._received(shown, message, [])
    assert shown.link.window == before


def test_text_of_a_file_stays_text_and_short(before: Session) -> None:
    evil = Finding(
        "r", FOUND, "<b>\x1b[31m" + "x" * 999, severity="low", evidence=({"name": "y" * 999},)
    )
    card = words.card(evil, before)
    assert "\x1b" not in card["title"]
    assert len(card["title"]) <= 400
    assert len(card["evidence"][0]["cells"][0][1]) <= 200


@pytest.mark.parametrize(
    ("gain", "said"),
    [
        (None, ""),
        ({"reason": "cannot be said"}, ""),
        (
            {"floor_ns": -5_000, "expected_ns": 10_000, "ceiling_ns": 20_000, "per": "step"},
            "10.0 µs a step expected, at least \N{MINUS SIGN}5.00 µs, at most 20.0 µs",
        ),
        (
            {"floor_ns": -9_000, "expected_ns": -5_000, "ceiling_ns": 2_000, "per": "step"},
            "none expected a step, at most 2.00 µs",
        ),
        (
            {"floor_ns": -9, "expected_ns": -5, "ceiling_ns": 0, "per": "step"},
            "none, by replaying this recording without the cost",
        ),
    ],
)
def test_gain_in_words(gain: dict[str, object] | None, said: str) -> None:
    assert words._gain(gain) == said


def test_nothing_found_and_nothing_applies_are_different_sentences(samples: Path) -> None:
    view = FindingsView(maiprof_nb.load(samples / "leak" / "gpu.csv"), rules=["input-bound"])
    assert view.headline == "Nothing was found that costs time or memory."
    assert view.aside.startswith("No rule applies")
