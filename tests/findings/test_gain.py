"""The projected gain beside a finding: in the object, in the JSON and in words."""

from __future__ import annotations

import json

import pytest

from maiprof_nb.analysis.projection import project
from maiprof_nb.cli.main import main
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.findings import diagnosis
from maiprof_nb.findings.diagnosis import as_json, diagnose
from tests.shipped_samples import SCENARIOS, loaded

pytestmark = pytest.mark.xdist_group("simulated samples")


def found(rule: str) -> diagnosis.Finding:
    (only,) = diagnose(loaded("before"), rules=[rule])
    return only


def test_gain_is_that_of_the_projection():
    said = found("input-bound").gain
    assert said == project(loaded("before"), "input").as_dict()
    assert said["floor_share"] < said["expected_share"] < said["ceiling_share"]


def test_gain_is_plain_json():
    assert (
        json.loads(json.dumps(as_json(found("single-tensor-optimizer"))))["gain"]["per"] == "step"
    )


def test_no_gain_where_nothing_was_found():
    assert found("launch-bound").outcome == "passed"
    assert found("launch-bound").gain is None


def test_no_gain_without_a_change():
    assert found("periodic-reload").outcome == "found"
    assert found("periodic-reload").gain is None


def test_a_projection_that_cannot_be_made_says_why(monkeypatch):
    def refused(*_: object) -> None:
        raise NotAnswerableError("the replay misses", remedy="record more")

    monkeypatch.setattr(diagnosis, "project", refused)
    said = found("input-bound")
    assert said.outcome == "found"
    assert "The replay misses" in said.gain["reason"]


def test_gain_in_words(capsys):
    main(["diagnose", str(SCENARIOS["before"])])
    printed = capsys.readouterr().out
    share = project(loaded("before"), "input").shares
    assert f"would save {share[0]:.1%}".replace("%", " %") in printed
    assert "taken for granted: 2 workers" in printed
