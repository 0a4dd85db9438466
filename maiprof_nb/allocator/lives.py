"""What a log opens and closes by address, tied to what is there at its end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_SHORT = 2**16


@dataclass(frozen=True)
class Lives:
    """Lives of blocks or segments, an array each, in no order.

    State ``k`` is after the first ``k`` events of the log; state 0 is before them.

    Parameters
    ----------
    address : array of int64
        Where it lay.
    opened, closed : array of int64
        The rows that began and ended it, of those given; -1 where there is none.
    kept : array of int64
        Its row in the final state; -1 where it is not in there.
    first_state, end_state : array of int64
        It lives in the states ``first_state <= k < end_state``.
    replaced, unmatched : int
        Opens at an address still open, and closes of one that was closed already.
    """

    address: Ints
    opened: Ints
    closed: Ints
    kept: Ints
    first_state: Ints
    end_state: Ints
    replaced: int
    unmatched: int


def doing(events: pd.DataFrame, *actions: str) -> Bools:
    """Which rows of `allocator_events` have one of these actions."""
    action = events["action"].cat
    wanted = np.append(np.isin(action.categories.to_numpy(object), actions), False)
    return wanted[action.codes.to_numpy()]


def by_value(values: Ints) -> Ints:
    """Positions that bring equal values together, each run in its order."""
    codes = pd.factorize(values)[0]
    short = codes.astype(np.uint16) if codes.max(initial=0) < _SHORT else codes
    return np.argsort(short, kind="stable")


def lives(
    address: Ints,
    position: Ints,
    opens: Bools,
    final_address: Ints,
    ends: int,
    *,
    final_known: bool = True,
) -> Lives:
    """Pair what opens and closes at each address, and tie it to the final state.

    Parameters
    ----------
    address, position, opens : array
        Of each event that opens or closes, oldest first; positions count from 0 in the log.
    final_address : array of int64
        What is there at the end.
    ends : int
        Length of the log.
    final_known : bool
        False if nothing is known about the end: then what was not closed is taken to live.

    Notes
    -----
    An address that is opened again was closed by that. A close without an open before it at its
    address closes what was there before the log; a second close closes nothing. What is still
    open and not in the final state ended behind the log; what is in it and was closed last was
    made there.
    """
    order = by_value(address)
    opened_there = opens[order]
    same = address[order][1:] == address[order][:-1]
    first_there = np.concatenate([[True], ~same])[: len(order)]
    followed = np.concatenate([same, [False]])[: len(order)]
    row = np.flatnonzero(opened_there)
    unseen = np.flatnonzero(~opened_there & first_there)
    following = np.minimum(row + 1, max(len(order) - 1, 0))
    ended = followed[row]

    at = np.concatenate([address[order[row]], address[order[unseen]]])
    opened = np.concatenate([order[row], np.full(len(unseen), -1, dtype=np.int64)])
    closed = np.concatenate([np.where(ended, order[following], -1), order[unseen]])
    state = np.append(position, -1) + 1  # after each row; of no row the first

    row_of = pd.Index(final_address)
    if not row_of.is_unique:
        row_of = row_of.where(~row_of.duplicated(), -1 - np.arange(len(row_of)))
    kept = np.full(len(at), -1, dtype=np.int64)
    still = closed < 0
    kept[still] = row_of.get_indexer(at[still])
    end_state = np.where(still, ends + 1, state[closed])
    if final_known:
        end_state[still & (kept < 0)] = ends

    other = np.ones(len(final_address), dtype=bool)
    other[kept[kept >= 0]] = False
    others = np.flatnonzero(other)
    seen = np.isin(final_address[others], address)
    none = np.full(len(others), -1, dtype=np.int64)
    return Lives(
        address=np.concatenate([at, final_address[others]]),
        opened=np.concatenate([opened, none]),
        closed=np.concatenate([closed, none]),
        kept=np.concatenate([kept, others]),
        first_state=np.concatenate([state[opened], np.where(seen, ends, 0)]),
        end_state=np.concatenate([end_state, none + ends + 2]),
        replaced=int((ended & opened_there[following]).sum()),
        unmatched=int((~opened_there[1:] & ~opened_there[:-1] & same).sum()),
    )
