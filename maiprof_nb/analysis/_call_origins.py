"""Which line of the user's code, and which nn.Module, a call was made from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._call_sites import is_user_code
from maiprof_nb.analysis._host_calls import every_call
from maiprof_nb.analysis._nesting import nearest_code
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.session import Session

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

USER_LINE, MODULE, LINE_OF = "user_line", "module", "line_of"
OF_CALL, OF_FORWARD = "call", "forward"
_MODULE_PREFIX = "nn.Module: "


class Around(NamedTuple):
    """The innermost wanted call around each call.

    Attributes
    ----------
    row : ndarray of int64
        Its row, or -1.
    of_forward : ndarray of bool
        Found round the forward operator that made the backward function the call lies in.
    """

    row: Ints
    of_forward: Bools


@remembered
def user_line_of(session: Session) -> pd.DataFrame:
    """The innermost function of the user's own code around each call that has one.

    Returns
    -------
    DataFrame
        ``recording``, ``event``, ``user_line`` and ``line_of`` (call, forward: the line is that
        of the forward operator which made this part of the backward pass); only calls that
        have a line.
    """
    calls = every_call(session)
    return _known(calls, USER_LINE, calls["name"].cat.categories, users_around(calls))


@remembered
def module_of(session: Session) -> pd.DataFrame:
    """The innermost ``nn.Module`` around each call that has one, named as recorded."""
    calls = every_call(session)
    names = calls["name"].cat
    is_module = [text.startswith(_MODULE_PREFIX) for text in names.categories]
    inside = np.array([*is_module, False], dtype=bool)[names.codes.to_numpy()]
    plain = names.categories.str.removeprefix(_MODULE_PREFIX)
    return _known(calls, MODULE, plain, around(calls, inside & _is_python(calls)))


def users_around(calls: pd.DataFrame) -> Around:
    """The innermost Python function of the user's own around each of `every_call`, or itself."""
    return around(calls, _is_python(calls) & is_user_code(calls["name"]))


def around(calls: pd.DataFrame, wanted: Bools) -> Around:
    """The innermost wanted call around each of `every_call`, or itself."""
    own = np.where(wanted, np.arange(len(calls)), -1)
    parent, forward = (calls[one].to_numpy(np.int64) for one in ("parent", "forward"))
    here = nearest_code(own, np.where(forward >= 0, -1, parent))
    across = nearest_code(own, np.where(forward >= 0, forward, parent))
    caller = nearest_code(own, parent)  # where the forward is in none, as of a CPU's backward()
    return Around(np.where(across >= 0, across, caller), (here < 0) & (across >= 0))


def _is_python(calls: pd.DataFrame) -> Bools:
    return (calls["kind"] == "python").to_numpy()


def _known(calls: pd.DataFrame, column: str, texts: pd.Index, found: Around) -> pd.DataFrame:
    known = (found.row >= 0) & (calls["event"] >= 0).to_numpy()
    codes = calls["name"].cat.codes.to_numpy(np.int64)[found.row[known]]
    numbers, names = pd.factorize(texts)
    value = pd.Categorical.from_codes(numbers[codes], categories=names).remove_unused_categories()
    of = pd.Categorical.from_codes(
        found.of_forward[known].astype(np.int64), categories=[OF_CALL, OF_FORWARD]
    )
    return calls.loc[known, ["recording", "event"]].assign(**{column: value, LINE_OF: of})
