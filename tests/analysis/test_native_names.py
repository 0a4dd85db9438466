"""Native names as they stand in recorded stacks, and as a person says them."""

from __future__ import annotations

import pytest

from maiprof_nb.analysis.native_names import spoken


@pytest.mark.parametrize(
    ("frame", "name"),
    [
        ("forward (/home/me/model.py:54)", "forward (/home/me/model.py:54)"),
        ("<lambda> (model.py:3)", "<lambda> (model.py:3)"),
        (
            "torch::autograd::generated::BmmBackward0::apply(std::vector<at::Tensor, "
            "std::allocator<at::Tensor> >&&) (??:0)",
            "BmmBackward0::apply (??:0)",
        ),
        ("at::TensorBase::contiguous(c10::MemoryFormat) const", "at::TensorBase::contiguous"),
        (
            "at::native::(anonymous namespace)::run<float>(int) (Copy.cpp:12)",
            "at::native::(anonymous namespace)::run<float> (Copy.cpp:12)",
        ),
        ("method_vectorcall.llvm.7574463793130541339", "method_vectorcall"),
        ("aten::empty", "aten::empty"),
        ("evaluate_function: MmBackward0", "evaluate_function: MmBackward0"),
    ],
)
def test_spoken(frame: str, name: str) -> None:
    assert spoken(frame) == name
