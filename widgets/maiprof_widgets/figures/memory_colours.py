"""Colours of bands in the memory timeline, from the theme of all figures."""

from __future__ import annotations

from maiprof_widgets.figures.theme import theme

_HUES = (0, 1, 2, 3, 4, 6)  # of the theme's series: no grey, no two blues
FADES = (0.0, 0.38, 0.62)  # further rounds of the hues, mixed towards the ground
GREY = 255  # the tone of what nothing tells
AGES = 6
ALIVE = AGES
# From short to long, by lightness alone as well as by hue (after cividis).
_AGES = {
    False: ("#00306f", "#39486b", "#5e626e", "#85816f", "#b3a469", "#e1cc55"),
    True: ("#4576b8", "#6d86a8", "#8f969c", "#b0a98a", "#d2bf72", "#fee838"),
}


def hues(*, dark: bool) -> tuple[str, ...]:
    """Colours to tell groups apart."""
    series = theme(dark=dark).series
    return tuple(series[i] for i in _HUES)


def ages(*, dark: bool) -> tuple[str, ...]:
    """Colours of ages, short to long, and last that of what is alive at the end."""
    return (*_AGES[dark], theme(dark=dark).series[1])


def chosen(*, dark: bool) -> str:
    """The colour of the chosen band, as of marks in the timeline."""
    return theme(dark=dark).mark
