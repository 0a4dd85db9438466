"""Which operator launched each piece of device work, and which operators enclose it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._host_calls import every_call
from maiprof_nb.analysis._nesting import nearest_code
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.session import Session

Ints = npt.NDArray[np.int64]
_NONE = -1


@dataclass(frozen=True)
class WorkOwners:
    """Operators as a forest, with the device work hung on it.

    Parameters
    ----------
    parent : ndarray of int64
        For each row of the table `operators`: the row of the enclosing one, or -1.
    owner : ndarray of int64
        For each row of the table `kernels`: the row of `operators` that launched it, or -1.
    """

    parent: Ints
    owner: Ints

    def outermost(self, wanted: npt.NDArray[np.bool_]) -> Ints:
        """For each operator the outermost of itself and its ancestors that is wanted, or -1."""
        found = np.where(wanted, np.arange(len(wanted)), _NONE)
        ancestor = self.parent.copy()
        while (has := ancestor >= 0).any():
            here = np.where(has, ancestor, 0)
            found = np.where(has & wanted[here], here, found)
            ancestor = np.where(has, self.parent[here], _NONE)
        return found

    def of_work(self, operators: Ints) -> Ints:
        """A row an operator -> the same a piece of work (-1 where no operator owns it)."""
        if len(operators) == 0:
            return np.full(len(self.owner), _NONE, dtype=np.int64)
        return np.where(self.owner >= 0, operators[np.maximum(self.owner, 0)], _NONE)


@remembered
def work_owners(session: Session) -> WorkOwners:
    """Owners by the work's external id, or else by the operator round its launch call."""
    operators = session.table("operators")[["recording", "external_id"]]
    launches = session.table("launches")[["recording", "correlation"]]
    of_operators, of_launches = _enclosing(session)
    work = session.table("kernels")[["recording", "external_id", "correlation"]]
    owner = _matched(work, operators, "external_id", np.arange(len(operators)))
    by_launch = _matched(work, launches, "correlation", of_launches)
    return WorkOwners(of_operators, np.where(owner >= 0, owner, by_launch))


def _enclosing(session: Session) -> tuple[Ints, Ints]:
    """The operator round each operator, and round each launch call; or -1."""
    calls = every_call(session)
    kind, parent = calls["kind"].to_numpy(), calls["parent"].to_numpy(np.int64)
    operators = np.flatnonzero(kind == "operator")  # in the order of their table, as launches
    own = np.full(len(calls), _NONE, dtype=np.int64)
    own[operators] = np.arange(len(operators))
    around = np.append(nearest_code(own, parent), _NONE)[parent]
    return around[operators], around[kind == "launch"]


def _matched(work: pd.DataFrame, of: pd.DataFrame, key: str, rows: Ints) -> Ints:
    """For each piece of work the row that has its id, or -1; the first where several have."""
    known = of[key].notna().to_numpy()
    keys = of.loc[known, ["recording", key]].assign(row=rows[known])
    keys = keys.drop_duplicates(["recording", key])
    found = work[["recording", key]].merge(keys, on=["recording", key], how="left")["row"]
    found = found.where(work[key].notna().to_numpy())
    return found.fillna(_NONE).to_numpy(np.int64)
