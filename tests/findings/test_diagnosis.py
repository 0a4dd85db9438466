"""The diagnosis: its four outcomes, its order, and the contract of the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from maiprof_nb import Session
from maiprof_nb.cli.main import main
from maiprof_nb.errors import UsageError
from maiprof_nb.findings import diagnosis
from maiprof_nb.findings.diagnosis import diagnose
from maiprof_nb.findings.rule import Found, NotApplicable, Passed, Rule
from maiprof_nb.findings.rules import RULES
from tests.shipped_samples import loaded
from tests.tiny_traces import annotation, kernel, launch, operator, session, step, text

LOADING = annotation("enumerate(DataLoader)#_It.__next__", 1100, 600)
WAITING = (launch(1, 1000), kernel(1010, 90, correlation=1), LOADING, launch(2, 1750))
INPUT_BOUND = (step(1, 1000, 1000), *WAITING, kernel(1800, 200, correlation=2))
# Word by word: what a consumer of the JSON may rely on.
FINDING = {
    "rule", "outcome", "severity", "title", "cost_ns", "share", "scope", "evidence", "advice",
    "trust", "reason",
}  # fmt: skip
OUTCOMES = {"found", "passed", "not-applicable", "failed"}


def rule(name: str, answer: object) -> Rule:
    def ask(_session: Session) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return Rule(name, "Is it?", ("steps",), "phases", "Do it.", "1 line", ask)


def test_four_outcomes_and_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {
        "a": NotApplicable("Record more."),
        "b": Passed("All is well: 0."),
        "c": ValueError("broken"),
        "d": Found("Little.", "low", cost_ns=10_000),
        "e": Found("Much.", "high", cost_ns=400_000),
    }
    monkeypatch.setattr(diagnosis, "RULES", tuple(rule(*pair) for pair in answers.items()))
    found = diagnose(session(*INPUT_BOUND))
    assert [(one.rule, one.outcome) for one in found] == [
        ("e", "found"), ("d", "found"), ("c", "failed"), ("b", "passed"), ("a", "not-applicable"),
    ]  # fmt: skip
    much = found[0]
    # One step of 1000 us, from 1000 to the end of its last work at 2000.
    assert much.scope == {"ranks": [], "steps": 1, "window_ns": [0, 1_000_000]}
    assert (much.share, much.cost_ns_per_step) == (pytest.approx(0.4), 400_000)
    assert (much.advice, much.change) == ("Do it.", "1 line")
    assert found[2].reason == "The rule failed (ValueError: broken)."
    assert found[4].reason == "Record more."


def test_a_rule_that_raises_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_session: Session) -> Any:
        raise KeyError("column")

    broken = tuple(replace(r, ask=fails) if r.id == "launch-bound" else r for r in RULES)
    monkeypatch.setattr(diagnosis, "RULES", broken)
    found = {one.rule: one for one in diagnose(session(*INPUT_BOUND))}
    assert found["launch-bound"].outcome == "failed"
    assert {one.outcome for name, one in found.items() if name != "launch-bound"} <= (
        OUTCOMES - {"failed"}
    )
    assert found["input-bound"].outcome == "found"


@pytest.mark.parametrize("events", [INPUT_BOUND, (operator("aten::mm", 1000, 5),), ()])
def test_every_rule_answers_and_none_fails(events: tuple[dict[str, Any], ...]) -> None:
    found = diagnose(session(*events))
    assert {one.rule for one in found} == {one.id for one in RULES}
    assert not [one for one in found if one.outcome == "failed"]
    for one in found:
        assert one.outcome in OUTCOMES
        assert bool(one.reason) == (one.outcome == "not-applicable")
        assert (one.severity is None) == (one.outcome != "found")
        if one.outcome == "found":
            assert any(character.isdigit() for character in one.title)
            assert one.evidence
            assert one.advice
            assert one.change


def test_ids_are_known_unique_and_in_order() -> None:
    ids = [one.id for one in RULES]
    assert ids == sorted(set(ids))


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no rule warp-drive") as problem:
        diagnose(session(*INPUT_BOUND), rules=["warp-drive"])
    assert "input-bound" in problem.value.sentence


def test_only_the_rules_asked_for() -> None:
    (found,) = diagnose(session(*INPUT_BOUND), rules=["input-bound"])
    # 600 us of loading lie in the gap from 1100 to 1800.
    assert (found.rule, found.cost_ns, found.share) == ("input-bound", 600_000, pytest.approx(0.6))


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "rank0.pt.trace.json"
    path.write_bytes(text(INPUT_BOUND))
    return path


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, list[str]]:
    code = main(["diagnose", *map(str, arguments)])
    printed = capsys.readouterr()
    assert printed.err == ""
    return code, printed.out.splitlines()


def test_json_contract(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    code, lines = said(capsys, "--json", trace, trace)
    assert code == 0
    first, second = (json.loads(line) for line in lines)  # one object a PATH
    assert first == second
    assert set(first) == {"source", "findings"}
    assert first["source"] == str(trace)
    assert {one["rule"] for one in first["findings"]} == {one.id for one in RULES}
    for one in first["findings"]:
        assert set(one) >= FINDING
        assert one["outcome"] in OUTCOMES
        assert set(one["trust"]) == {"state", "reasons"}
        assert isinstance(one["evidence"], list)
        if one["outcome"] == "found":
            assert set(one["scope"]) == {"ranks", "steps", "window_ns"}


def test_json_of_what_cannot_be_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, lines = said(capsys, "--json", tmp_path / "none.json")
    assert code == 2
    assert set(json.loads(lines[0])) == {"source", "findings", "error"}
    assert json.loads(lines[0])["findings"] == []


@pytest.mark.parametrize(
    ("fail_on", "code"),
    [
        ([], 0),
        (["input-bound"], 1),
        (["garbage-collection"], 0),
        (["garbage-collection", "input-bound"], 1),
        (["any"], 1),
    ],
)
def test_exit_codes(
    capsys: pytest.CaptureFixture[str], trace: Path, fail_on: list[str], code: int
) -> None:
    options = [text for name in fail_on for text in ("--fail-on", name)]
    assert said(capsys, *options, trace)[0] == code


def test_a_path_that_cannot_be_read_outweighs_a_finding(
    capsys: pytest.CaptureFixture[str], trace: Path, tmp_path: Path
) -> None:
    code, _ = said(capsys, "--fail-on", "any", trace, tmp_path / "none.json")
    assert code == 2


def test_an_unknown_rule_on_the_command_line_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], trace: Path
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["diagnose", "--fail-on", "warp-drive", str(trace)])
    assert stopped.value.code == 2
    assert "warp-drive" in capsys.readouterr().err


def test_words_for_people(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    _, lines = said(capsys, trace)
    assert lines[0] == str(trace)
    (line,) = [line for line in lines if " input-bound " in line]
    assert line.split()[:2] == ["found", "input-bound"]
    assert "60.0 %" in line


def test_what_ends_the_job_is_read_first() -> None:
    """The samples with more bytes in holes than were asked for, and with idle time to gain."""
    assert diagnose(loaded("oom"))[0].rule == "oom"
    assert diagnose(loaded("leak"))[0].rule == "memory-leak"
