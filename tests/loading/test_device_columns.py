"""Launch configurations, types, values and stacks as columns."""

from __future__ import annotations

from tests import tiny_traces as tiny


def test_launch_configuration():
    args = {"grid": [864, 2, 1], "block": [256, 1, 1], "registers per thread": 47}
    table = tiny.session(
        tiny.kernel(1000, 5, **args, **{"shared memory": 0}), tiny.kernel(1010, 5)
    ).table("kernels")
    columns = ["grid", "block", "registers", "shared_memory_bytes"]
    assert table[columns].iloc[0].tolist() == ["[864, 2, 1]", "[256, 1, 1]", 47, 0]
    assert table[columns].iloc[1].isna().all()


def test_odd_launch_configurations_are_missing():
    table = tiny.session(
        *(tiny.kernel(1000, 5, grid=grid) for grid in ("a", {}, [1.5], ["1", "1"], None, [8, 1, 1]))
    ).table("kernels")
    assert table["grid"].dropna().tolist() == ["[8, 1, 1]"]


def test_lists_over_several_lines_are_the_same_lists():
    """PyTorch up to 2.3 writes them so; other versions on one line."""
    text = tiny.text([tiny.operator("aten::mm", 1000, 5, **{"Input Dims": [[2, 3], []]})])
    broken = text.replace(b"[[2, 3], []]", b"[\n          [\n   2,\n  3\n   ],\n   []\n  ]")
    assert broken != text
    table = tiny.session_of(broken).table("operators")
    assert table["input_dims"].tolist() == ["[[2, 3], []]"]


def test_what_an_operator_was_given():
    args = {
        "Input type": ["c10::Half", "Scalar"],
        "Concrete Inputs": ["", "1"],
        "Call stack": 'a.py(1): f;"b".py(2): <module>',
    }
    table = tiny.session(
        tiny.operator("aten::mul", 1000, 5, **args),
        tiny.operator("aten::mul", 1010, 5, **{"Call stack": ""}),
        tiny.operator("aten::mul", 1020, 5, **{"Call stack": 7}),
    ).table("operators")
    assert table["input_types"].iloc[0] == '["c10::Half", "Scalar"]'
    assert table["concrete_inputs"].iloc[0] == '["", "1"]'
    assert table["call_stack"].iloc[0] == 'a.py(1): f;"b".py(2): <module>'
    assert table["call_stack"].isna().tolist() == [False, True, True]
    assert table["input_types"].isna().tolist() == [False, True, True]
