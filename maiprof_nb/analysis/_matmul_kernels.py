"""Which kernels half precision makes faster, and by how much at least and at most."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

_HALF = re.compile(
    r"fp16|f16|half|bf16|bfloat|h?16816|hmma|hgemm|imma|int8|i8|fp8|e4m3|h884|_HH|_BB",
    re.IGNORECASE,
)
_TF32 = re.compile(r"tf32|s1688|tensorop_s", re.IGNORECASE)
_MATMUL = re.compile(
    r"gemm|gemv|conv|cutlass|xmma|winograd|dgrad|wgrad|cudnn|attention|flash|fmha|nvjet|Cijk",
    re.IGNORECASE,
)

# Peak of half-precision matrix units / peak of fp32 without them, by compute capability; vendors'
# data sheets of V100, T4, A100, A10, L40, H100 and B200.
_PEAK_RATIO = {(7, 0): 8.0, (7, 5): 8.0, (8, 0): 16.0, (8, 6): 4.0, (8, 9): 4.0, (9, 0): 14.8,
               (10, 0): 28.0}  # fmt: skip
_UNKNOWN_RATIO = 8.0


def half_precision_factors(
    names: pd.Series, meta: Mapping[str, Any]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64]]:
    """Eligible kernels, and by what factors half precision shortens every kernel.

    Returns
    -------
    eligible : ndarray of bool
        Matrix products and convolutions that do not run in half precision yet.
    factors : ndarray of float64, kernels x 3
        At least, expected (the geometric mean of the bounds) and at most.
    """
    codes, texts = pd.factorize(names.astype("str"))
    most = peak_ratio(meta)
    of_text = np.ones((len(texts), 3))
    eligible = np.zeros(len(texts), dtype=bool)
    for i, text in enumerate(texts):
        if not _MATMUL.search(text) or _HALF.search(text):
            continue
        eligible[i] = True
        least, best = (1.2, 2.0) if _TF32.search(text) else (min(2.0, most), most)
        of_text[i] = least, np.sqrt(least * best), best
    return eligible[codes], of_text[codes]


def peak_ratio(meta: Mapping[str, Any]) -> float:
    """How much faster the device multiplies matrices in half precision, at its peak."""
    devices = meta.get("deviceProperties") or [{}]
    first = devices[0] if isinstance(devices, list) and isinstance(devices[0], Mapping) else {}
    major, minor = first.get("computeMajor"), first.get("computeMinor")
    if not isinstance(major, int) or not isinstance(minor, int):
        return _UNKNOWN_RATIO
    if major < 7 and "AMD" not in str(first.get("name")):
        return 2.0  # no matrix units
    return _PEAK_RATIO.get((major, minor), _UNKNOWN_RATIO)
