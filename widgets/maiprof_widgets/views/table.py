"""A paged table that sorts and searches, as all tables of the project look."""

from __future__ import annotations

from typing import Any

import anywidget
import pandas as pd
from itables.widget import ITable

from maiprof_widgets.views._static import module


class HeaderSort(anywidget.AnyWidget):
    """Invisible; makes the tables beside it sort at a click anywhere on a column's name."""

    _esm = module("header-sort.js")


def paged_table(frame: pd.DataFrame, *, text_columns: int = 1, **options: Any) -> ITable:
    """A table widget; text in it is shown as text, never as HTML.

    Parameters
    ----------
    frame : DataFrame
        What to show, in its order; a few thousand rows at most.
    text_columns : int
        How many columns, from the left, hold text; the others are numbers, set right.
    **options
        Further options of DataTables.
    """
    return ITable(
        frame,
        pageLength=10,
        lengthMenu=[10, 25, 100, 500],
        showIndex=False,
        allow_html=False,
        maxBytes=0,
        maxRows=0,
        maxColumns=0,
        order=[],
        classes="display compact nowrap maiprof-table",
        style="width:100%;table-layout:auto;margin:0",
        scrollX=True,
        columnDefs=column_sides(text_columns, frame.shape[1]),
        **options,
    )


def column_sides(text_columns: int, columns: int) -> list[dict[str, Any]]:
    """DataTables' ``columnDefs``: text left, numbers right."""
    return [
        {"className": "dt-left", "targets": list(range(text_columns))},
        {"className": "dt-right", "targets": list(range(text_columns, columns))},
    ]
