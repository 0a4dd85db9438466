"""What is remembered: once for each thing asked of, and for each set of further arguments."""

from __future__ import annotations

from maiprof_nb.analysis._remember import remembered


class Asked:
    """Something an analysis can be asked of."""


def test_each_question_is_answered_once() -> None:
    asked = []

    @remembered
    def answer(of: Asked, number: int = 0, *, name: str = "") -> str:
        asked.append((of, number, name))
        return f"{number}{name}"

    one, other = Asked(), Asked()
    assert [answer(one), answer(one), answer(one, 1), answer(one, 1), answer(one, name="a")] == [
        "0", "0", "1", "1", "0a"
    ]  # fmt: skip
    answer(other)
    assert asked == [(one, 0, ""), (one, 1, ""), (one, 0, "a"), (other, 0, "")]
