"""Which line of the user's code, and which nn.Module, a call was made from."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._call_sites import innermost_line, is_user_code, nearest

USER_LINE, MODULE = "user_line", "module"
_KEYS = ["recording", "event"]
_MODULE_PREFIX = "nn.Module: "


def user_line_of(calls: pd.DataFrame, operators: pd.DataFrame) -> pd.DataFrame:
    """The innermost function of the user's own code around each call that has one.

    Parameters
    ----------
    calls : DataFrame
        Calls with Python functions among them, with ``parent``.
    operators : DataFrame
        The table, for the stacks that old traces keep in it.

    Returns
    -------
    DataFrame
        ``recording``, ``event``, ``user_line``; only calls that have a line.
    """
    users = (calls["kind"] == "python").to_numpy() & is_user_code(calls["name"])
    by_frames = _names_around(calls, users)
    if operators["call_stack"].isna().all():
        return _known(calls, USER_LINE, by_frames)
    stacks = operators[[*_KEYS, "call_stack"]]
    found = calls[_KEYS].merge(stacks, on=_KEYS, how="left")["call_stack"].cat
    codes, lines = _lines(found.categories, found.codes.to_numpy(np.int64))
    own = np.where(codes >= 0, np.arange(len(calls)), -1)
    source = nearest(own, calls["parent"].to_numpy(np.int64))
    by_stack = pd.Categorical.from_codes(
        np.where(source >= 0, codes[source], -1), categories=lines
    ).astype("str")
    texts = pd.Series(by_frames.astype("object")).where(by_frames.notna(), pd.Series(by_stack))
    return _known(calls, USER_LINE, pd.Categorical(texts))


def module_of(calls: pd.DataFrame) -> pd.DataFrame:
    """The innermost ``nn.Module`` around each call that has one: ``module`` as recorded."""
    names = calls["name"].cat
    is_module = np.array([text.startswith(_MODULE_PREFIX) for text in names.categories] + [False])
    inside = (calls["kind"] == "python").to_numpy() & is_module[names.codes.to_numpy()]
    found = _names_around(calls, inside)
    plain = found.rename_categories(
        [text.removeprefix(_MODULE_PREFIX) for text in found.categories]
    )
    return _known(calls, MODULE, plain)


def _names_around(calls: pd.DataFrame, wanted: npt.NDArray[np.bool_]) -> pd.Categorical:
    """Name of the innermost wanted call around each, the call itself included."""
    row = np.where(wanted, np.arange(len(calls)), -1)
    source = nearest(row, calls["parent"].to_numpy(np.int64))
    codes = calls["name"].cat.codes.to_numpy(np.int64)
    if not len(calls):
        return pd.Categorical(pd.Series([], dtype="str"))
    around = pd.Categorical.from_codes(
        np.where(source >= 0, codes[source], -1), categories=calls["name"].cat.categories
    )
    return around.remove_unused_categories()


def _lines(
    stacks: pd.Index, codes: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], pd.Index]:
    """Stacks, each looked at once -> codes of their lines, and the lines."""
    line_codes, lines = pd.factorize(
        pd.Series([innermost_line(one) for one in stacks], dtype="str")
    )
    return np.append(line_codes, -1)[codes].astype(np.int64), pd.Index(lines)


def _known(calls: pd.DataFrame, column: str, values: pd.Categorical) -> pd.DataFrame:
    known = values.notna()
    return calls.loc[known, _KEYS].assign(**{column: values[known]})
