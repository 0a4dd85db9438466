"""Every error says what was wrong, where, and what to do, on one line."""

from __future__ import annotations

import pytest

import maiprof_nb
from maiprof_nb.errors import LoadError, MaiprofError, NotAnswerableError, UsageError


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (MaiprofError("it broke"), "it broke."),
        (LoadError("is empty", where="a.json"), "a.json: is empty."),
        (
            UsageError("rank 3 is not here", remedy="Ranks here: 0, 1"),
            "rank 3 is not here. Ranks here: 0, 1",
        ),
        (
            NotAnswerableError("two\nlines", where="b", remedy="Give\n one"),
            "b: two lines. Give one",
        ),
    ],
)
def test_sentence(error, sentence):
    assert error.sentence == sentence
    assert str(error) == sentence
    assert isinstance(error, MaiprofError)


def test_parts_stay_reachable():
    error = LoadError("is empty", where="a.json", remedy="Record again")
    assert (error.problem, error.where, error.remedy) == ("is empty", "a.json", "Record again")


def test_a_notebook_shows_the_sentence_and_no_traceback():
    """IPython calls `_render_traceback_` in place of its own formatting."""
    assert LoadError("is empty", where="a").__class__._render_traceback_(
        LoadError("is empty", where="a")
    ) == ["LoadError: a: is empty."]


def test_all_are_public():
    for name in ("LoadError", "MaiprofError", "NotAnswerableError", "UsageError"):
        assert name in maiprof_nb.__all__
