"""The project's own exceptions. Each says what was wrong, where, and what to do."""

from __future__ import annotations


class MaiprofError(Exception):
    """Base of every error this project raises on purpose.

    Parameters
    ----------
    problem : str
        What was wrong, as one sentence without a final full stop.
    where : str, optional
        The file, URL, row or argument it was found in.
    remedy : str, optional
        What the reader can do about it.
    """

    def __init__(self, problem: str, *, where: str = "", remedy: str = "") -> None:
        self.problem = problem
        self.where = where
        self.remedy = remedy
        super().__init__(self.sentence)

    @property
    def sentence(self) -> str:
        """The whole message on one line."""
        head = f"{self.where}: {self.problem}" if self.where else self.problem
        text = f"{head}. {self.remedy}" if self.remedy else f"{head}."
        return " ".join(text.split())

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows instead of a traceback."""
        return [f"{type(self).__name__}: {self.sentence}"]


class LoadError(MaiprofError):
    """A file or URL cannot be read as any format the project knows."""


class NotAnswerableError(MaiprofError):
    """A figure cannot be computed from what this session recorded."""


class UsageError(MaiprofError):
    """An argument does not fit the session it was given for."""
