"""What can be believed, beside the figures."""

from __future__ import annotations

from pathlib import Path

import pytest

import maiprof_nb
from maiprof_nb.session import Session
from maiprof_nb.trust import Trust, checks, trust
from maiprof_widgets import Overview, escaping
from maiprof_widgets.views.sources import SourcesView
from maiprof_widgets.views.trust import TrustLine, _together


@pytest.fixture(scope="module")
def before(samples: Path) -> Session:
    return maiprof_nb.load(samples / "case_study" / "before")


def test_a_line_says_what_the_gate_says(before: Session) -> None:
    told = trust(before, "gpu-utilisation")
    assert told.state == "reduced"  # stacks and shapes were recorded, by the sample's README
    line = TrustLine(before, "gpu-utilisation")
    assert "Trust: <b>reduced</b> (2 reasons)" in line.value
    assert "<details" in line.value  # folded: it must not be louder than the figure
    assert all(escaping.text(reason) in line.value for reason in told.reasons)


def test_what_cannot_be_answered_names_its_remedy(samples: Path) -> None:
    session = maiprof_nb.load(samples / "leak" / "gpu.csv")
    line = TrustLine(session, "gpu-utilisation")
    assert "not answerable" in line.value
    assert "ProfilerActivity.CUDA" in line.value


def test_an_unanswerable_figure_of_several_does_not_speak_for_the_others() -> None:
    none = Trust("not answerable", ("nothing",))
    assert _together([Trust("ok"), none]) == Trust("ok")
    assert _together([none, none]) == none
    assert _together([Trust("ok"), Trust("reduced", ("a",))]) == Trust("reduced", ("a",))


def test_every_view_of_the_overview_has_its_line(before: Session) -> None:
    overview = Overview(before)
    for view in (overview.utilisation, overview.memory, overview.ranking):
        after = overview.children[overview.children.index(view) + 1]
        assert isinstance(after, TrustLine)
    overview.folds["metrics"].button.value = True
    assert isinstance(overview.folds["metrics"].children[2], TrustLine)


def test_the_sources_hold_every_check(before: Session) -> None:
    text = SourcesView(before).value
    found = checks(before)
    outcomes = found["outcome"].value_counts()
    assert f"Checks: {outcomes['failed']} failed, {outcomes['passed']} passed" in text
    assert text.count("<tr>") >= len(found)
    assert all(f"({name})" in text for name in found["id"])
