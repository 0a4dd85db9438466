"""Which devices have tensor cores, and which single-precision products run beside them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from maiprof_nb.analysis._devices import DeviceFacts, device_facts
from maiprof_nb.analysis.device_activity import require_activity
from maiprof_nb.analysis.matrix_calls import matrix_calls
from maiprof_nb.analysis.tensor_cores import NO, verdict_of
from maiprof_nb.session import Session

_TF32_FROM = 8  # compute capability of Ampere
_SINGLE = r"(?:^|[_ ])(?:\w*[a-z])?s(?:gemm|cudnn)|<float"
_NO_ATTENTION = "aten::scaled_dot_product|aten::_scaled_dot_product"


def _facts(session: Session) -> list[DeviceFacts]:
    return [device_facts(session, one.recording, one.device) for one in require_activity(session)]


def tensor_core_devices(session: Session) -> bool | None:
    """Whether any device that worked has tensor cores; None where nothing tells."""
    known = [facts.tensor_cores for facts in _facts(session)]
    return True if True in known else None if None in known else False


def tf32(session: Session) -> bool:
    """Whether some device that worked does TF32, or might."""
    majors = [facts.compute_major for facts in _facts(session)]
    names = [facts.name for facts in _facts(session)]
    nvidia = [m for m, n in zip(majors, names, strict=True) if "AMD" not in n and m is not None]
    return not nvidia or max(nvidia) >= _TF32_FROM


def plain_single_precision(session: Session) -> pd.DataFrame | None:
    """Single-precision products and convolutions whose kernels do not use tensor cores.

    Returns
    -------
    DataFrame or None
        Rows of `matrix_calls`, those of most device time first. None where there is no product
        of which the precision is known: by the recorded type, or else by kernels' names.
    """
    calls = matrix_calls(session)
    calls = calls[~calls["name"].astype("str").str.contains(_NO_ATTENTION)]
    calls = calls.assign(single=_single(session, calls))
    known = calls[calls["single"].notna()]
    if known.empty:
        return None
    plain = known["tensor_core_ns"] + known["undecided_ns"] <= known["device_ns"] / 2
    return known[known["single"].astype(bool) & plain].drop(columns="single")


def _single(session: Session, calls: pd.DataFrame) -> pd.Series:
    """True or False where the precision is known, else missing."""
    by_type = calls["type"].isin(["float", "Float"]).astype("boolean")
    by_type = by_type.where(calls["type"].notna())
    if by_type.notna().all():
        return by_type
    # No types: a job whose plain matrix kernels are single precision.
    work = session.table("kernels")
    names = work.loc[work["kind"] == "compute", "name"].cat.remove_unused_categories()
    plain = [n for n in names.cat.categories if verdict_of(str(n))[0] == NO]
    some = pd.Series(plain, dtype="str").str.contains(_SINGLE).to_numpy(bool)
    return by_type.fillna(pd.Series(True if np.any(some) else pd.NA, calls.index, "boolean"))
