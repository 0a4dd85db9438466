"""Sizes that are no multiple of what tensor cores take."""

from __future__ import annotations

import pytest

import maiprof_nb
from tests import tiny_traces as tiny
from tests.findings.asking import US, finding

RULE = "misaligned-dims"


def session(dims: list, kind: str = "c10::Half", name: str = "aten::mm") -> tiny.Session:
    args = {"External id": 1, "Input Dims": dims, "Input type": [kind] * len(dims)}
    return tiny.session(
        tiny.step(1, 1000, 1000),
        tiny.operator(name, 1000, 9, **args),
        tiny.kernel(1010, 200, **{"External id": 1}),
    )


@pytest.mark.parametrize(
    ("dims", "kind", "name"),
    [
        ([[64, 512], [512, 30522]], "c10::Half", "aten::mm"),
        ([[64, 510], [512, 510], [512]], "c10::BFloat16", "aten::linear"),
        ([[64, 512], [512, 1000]], "c10::Float8_e4m3fn", "aten::_scaled_mm"),  # 8 x 125
        ([[1, 8, 99, 36]] * 3, "c10::Half", "aten::scaled_dot_product_attention"),
    ],
)
def test_found(dims: list, kind: str, name: str) -> None:
    found = finding(session(dims, kind, name), RULE)
    assert found.outcome == "found"
    assert found.cost_ns == 200 * US
    assert "20.0 %" in found.title
    assert found.evidence[0]["name"] == name


@pytest.mark.parametrize(
    ("dims", "kind", "name"),
    [
        ([[63, 512], [512, 1000]], "c10::Half", "aten::mm"),  # rows are free
        ([[64, 512], [512, 1]], "c10::Half", "aten::mm"),  # a vector
        ([[1, 8, 559, 64]] * 3, "c10::Half", "aten::scaled_dot_product_attention"),
    ],
)
def test_passed(dims: list, kind: str, name: str) -> None:
    assert finding(session(dims, kind, name), RULE).outcome == "passed"


def test_single_precision_is_another_matter() -> None:
    found = finding(session([[64, 510], [510, 30522]], "float"), RULE)
    assert found.outcome == "not-applicable"


def test_odd_number_of_patches(corpus):
    """72 x 72 patches and one class token: 5 185 rows of attention written out."""
    found = finding(maiprof_nb.load(corpus / "kineto/tracelens-owlv2-h100"), RULE)
    assert found.outcome == "found"
    assert "5185" in found.evidence[0]["input_dims"]
