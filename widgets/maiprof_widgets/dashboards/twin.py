"""A link for views that will be replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maiprof_widgets.link import LinkState

_TRAITS = ("window", "ranks", "selection", "moment_ns", "dark")


def twin_of(link: LinkState) -> tuple[LinkState, Callable[[], None]]:
    """A second link that says the same as the first, and what parts them.

    Views observe the link for as long as it lives. Those of the second are forgotten with it.
    """
    twin = LinkState(**{name: getattr(link, name) for name in _TRAITS})

    def to_twin(change: Any) -> None:
        setattr(twin, change["name"], change["new"])

    def to_link(change: Any) -> None:
        setattr(link, change["name"], change["new"])

    link.observe(to_twin, _TRAITS)
    twin.observe(to_link, _TRAITS)

    def part() -> None:
        link.unobserve(to_twin, _TRAITS)
        twin.unobserve(to_link, _TRAITS)

    return twin, part
