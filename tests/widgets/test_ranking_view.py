"""What can be ranked and followed, without a browser."""

from __future__ import annotations

import ipywidgets
import pytest

from maiprof_nb.analysis import callees, kernel_ranking, operator_ranking, python_ranking
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets import LinkState, RankingView, Selection, UtilisationView
from tests import tiny_traces as tiny

US = 1000
EVIL = '<img src=x onerror="broken=1">\x1b[31m'


@pytest.fixture
def session() -> Session:
    """`main` (200 µs) runs `block` (100 µs), which runs linear (60, addmm 50 of it) and relu."""
    return tiny.session(
        tiny.python("train.py(1): main", 1000, 200),
        tiny.operator("block", 1000, 100, **{"External id": 1}),
        tiny.python("nn.Module: Linear_0", 1005, 70),
        tiny.operator("aten::linear", 1010, 60),
        tiny.operator("aten::addmm", 1015, 50),
        tiny.launch(1, 1020),
        tiny.operator("aten::relu", 1080, 10),
        tiny.operator("aten::linear", 1150, 7),
        tiny.kernel(
            1030,
            40,
            correlation=1,
            grid=[8, 1, 1],
            block=[256, 1, 1],
            **{"registers per thread": 96},
        ),
        tiny.memcpy(1100, 5),
    )


@pytest.fixture
def link() -> LinkState:
    return LinkState()


def choose(view: RankingView, name: str) -> None:
    view.table.selected_rows = [view.ranking["name"].tolist().index(name)]


def buttons(widget: ipywidgets.Widget) -> dict[str, ipywidgets.Button]:
    found = {}
    for child in getattr(widget, "children", ()):
        found |= buttons(child)
        if isinstance(child, ipywidgets.Button):
            found[child.description] = child
    return found


def words(widget: ipywidgets.Widget) -> str:
    own = getattr(widget, "value", "") if isinstance(widget, ipywidgets.HTML) else ""
    return own + " ".join(words(child) for child in getattr(widget, "children", ()))


# --- what is ranked -----------------------------------------------------------------------


def test_everything_recorded_has_a_button_and_its_own_figures(
    session: Session, link: LinkState
) -> None:
    view = RankingView(session, link)
    assert [key for _, key in view.what.options] == ["operators", "kernels", "launches", "python"]
    assert view.ranking["name"].tolist() == operator_ranking(session)["name"].tolist()
    view.what.value = "kernels"
    assert view.ranking["name"].tolist() == kernel_ranking(session)["name"].tolist()
    assert view.table.df["Share (%)"].tolist() == [88.9, 11.1]  # 40 and 5 of 45 µs
    assert view.table.df["Grid"].tolist() == ["[8, 1, 1]", ""]
    assert view.table.df["Registers"].tolist() == ["96", ""]  # a copy has none
    assert view.caption.value.startswith("<b>Device work</b>")
    view.what.value = "launches"
    assert view.table.df["Calls"].tolist() == [1]
    assert view.ranking["name"].tolist() == ["cudaLaunchKernel"]
    view.what.value = "python"
    assert view.ranking["name"].tolist() == python_ranking(session)["name"].tolist()
    view.what.value = "operators"
    assert view.ranking["name"].tolist() == operator_ranking(session)["name"].tolist()
    assert view.status.value == ""


def test_only_what_was_recorded_can_be_chosen(link: LinkState) -> None:
    plain = RankingView(tiny.session(tiny.operator("f", 1000, 5)), link)
    assert [key for _, key in plain.what.options] == ["operators"]
    assert plain.what not in plain.children
    assert [key for _, key in plain.by.options] == ["name", "shapes"]
    device = RankingView(tiny.session(tiny.kernel(1000, 5)), link)
    assert [key for _, key in device.what.options] == ["kernels"]
    assert device.ranking["name"].tolist() == ["gemm"]


def test_by_line_and_by_module(session: Session, link: LinkState) -> None:
    view = RankingView(session, link)
    view.by.value = "stack"
    shown = view.table.df
    assert set(shown["Called from"]) == {"train.py(1): main"}
    view.by.value = "module"
    linear = view.table.df[view.table.df["Name"] == "aten::linear"]
    assert dict(zip(linear["Module"], linear["Calls"], strict=True)) == {"Linear_0": 1, "": 1}
    view.what.value = "python"
    assert view.by.layout.display == "none"  # one grouping is no choice
    view.what.value = "kernels"
    assert view.by.layout.display is None
    assert [key for _, key in view.by.options] == ["name", "launch"]


def test_the_second_row_of_a_name_stays_chosen(session: Session, link: LinkState) -> None:
    view = RankingView(session, link)
    view.by.value = "module"
    rows = [i for i, name in enumerate(view.ranking["name"]) if name == "aten::linear"]
    view.table.selected_rows = [rows[1]]
    assert view.table.selected_rows == [rows[1]]
    assert "total 7.00 µs" in view.chosen.value


def test_a_window_ranks_device_work_that_overlaps_it(session: Session, link: LinkState) -> None:
    view = RankingView(session, link)
    view.what.value = "kernels"
    link.window = TimeWindow(99 * US, 110 * US)
    assert view.ranking["name"].tolist() == ["Memcpy HtoD"]
    link.window = TimeWindow(180 * US, 190 * US)
    assert "Nothing of this kind ran in this window" in view.status.value
    view.what.value = "python"
    assert view.ranking["name"].tolist() == ["train.py(1): main"]
    assert view.status.value == ""


def test_a_chosen_kernel_is_marked_in_the_timeline(session: Session, link: LinkState) -> None:
    timeline, view = UtilisationView(session, link), RankingView(session, link)
    view.what.value = "kernels"
    choose(view, "gemm")
    assert link.selection == Selection("kernels", name="gemm")
    assert "88.9 % of all device work" in view.chosen.value
    marks = next(trace for trace in timeline.figure.data if trace.name == "marks")
    assert len(marks.x) == 3  # a mark is three points
    assert view.tree.path == ()
    view.what.value = "operators"
    assert view.table.selected_rows == []
    assert view.chosen.value == ""


# --- following the tree down --------------------------------------------------------------


def test_a_row_shows_its_callees_and_callers(session: Session, link: LinkState) -> None:
    view = RankingView(session, link)
    choose(view, "aten::linear")
    assert view.tree.path == ("aten::linear",)
    assert view.tree.callees["name"].tolist() == ["aten::addmm"]
    assert view.tree.callees.equals(callees(session, "aten::linear"))
    said = words(view.tree)
    assert "2 calls: 67.0 µs, of which 17.0 µs" in said
    assert "block" in buttons(view.tree)
    assert "nothing that was recorded" in said  # the second call has no caller
    view.table.selected_rows = []
    assert view.tree.children == ()


def test_down_by_a_click_and_up_by_the_breadcrumb(session: Session, link: LinkState) -> None:
    view = RankingView(session, link)
    choose(view, "block")
    buttons(view.tree)["aten::linear"].click()
    assert view.tree.path == ("block", "aten::linear")
    assert link.selection == Selection("operators", name="aten::linear")
    assert view.ranking["name"].iloc[view.table.selected_rows].tolist() == ["aten::linear"]
    assert "1 calls through block: 60.0 µs" in words(view.tree)  # not the call elsewhere
    buttons(view.tree)["block"].click()
    assert view.tree.path == ("block",)
    assert link.selection == Selection("operators", name="block")


def test_one_button_follows_the_time_down(session: Session, link: LinkState) -> None:
    view = RankingView(session, link)
    choose(view, "block")
    assert "go down" in words(view.tree)
    buttons(view.tree)["Follow the time down"].click()
    assert view.tree.path == ("block", "aten::linear", "aten::addmm")
    assert "you have arrived" in words(view.tree)
    assert buttons(view.tree)["Follow the time down"].disabled


def test_a_choice_elsewhere_starts_a_new_path_and_a_window_keeps_it(
    session: Session, link: LinkState
) -> None:
    view = RankingView(session, link)
    choose(view, "block")
    buttons(view.tree)["aten::linear"].click()
    link.window = TimeWindow(0, 70 * US)
    assert view.tree.path == ("block", "aten::linear")
    link.selection = Selection("operators", name="aten::relu")
    assert view.tree.path == ()  # it does not run in this window
    link.window = None
    assert view.tree.path == ("aten::relu",)


def test_python_functions_have_a_tree_with_python_in_it(session: Session, link: LinkState) -> None:
    view = RankingView(session, link)
    view.what.value = "python"
    choose(view, "train.py(1): main")
    assert link.selection == Selection("python_calls", name="train.py(1): main")
    assert view.tree.callees["name"].tolist() == ["block", "aten::linear"]
    buttons(view.tree)["block"].click()
    assert view.tree.path == ("train.py(1): main", "block")
    assert view.tree.callees["name"].tolist() == ["nn.Module: Linear_0", "aten::relu"]


def test_names_in_the_tree_stay_text(link: LinkState) -> None:
    made = tiny.session(tiny.operator(EVIL, 1000, 50), tiny.operator(EVIL + "2", 1010, 20))
    view = RankingView(made, link)
    choose(view, EVIL)
    buttons(view.tree)[
        next(one for one in buttons(view.tree) if "]2" in one or "m2" in one)
    ].click()
    shown = words(view)
    assert "&lt;img" in shown
    assert "<img" not in shown
    assert not [one for one in buttons(view.tree) if "\x1b" in one]
