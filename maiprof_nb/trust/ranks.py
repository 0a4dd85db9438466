"""Ranks of the job that are not in the session."""

from __future__ import annotations

from maiprof_nb import units
from maiprof_nb.session import Session
from maiprof_nb.trust.rule import Result, failed, not_applicable, passed, rule


@rule(
    "missing-ranks",
    of="session",
    title="not all ranks of the job are loaded",
    remedy="Load the folder that holds the traces of all ranks",
    reduces=("ranks",),
)
def missing_ranks(session: Session) -> Result:
    """The traces say that the job had more ranks than are loaded.

    A straggler among those missing is seen only as waiting.
    """
    traces = [recording for recording in session.recordings if recording.kind == "trace"]
    sizes = [size for recording in traces if (size := _world_size(recording.meta))]
    if not sizes:
        return not_applicable("no trace says how many ranks the job had")
    world = max(sizes)
    if len(traces) >= world:
        return passed()
    return failed(
        f"{units.count(len(traces))} of {units.count(world)} ranks are loaded; what the others did "
        "is unknown.",
        world - len(traces),
        1 - len(traces) / world,
    )


def _world_size(meta: object) -> int:
    stated = meta.get("distributedInfo") if hasattr(meta, "get") else None
    size = stated.get("world_size") if isinstance(stated, dict) else None
    return size if isinstance(size, int) and not isinstance(size, bool) else 0
