"""Nothing is hidden without a label: bands, merged bands and the rest are all that is allocated."""

from __future__ import annotations

import numpy as np
import pytest

import maiprof_nb
from maiprof_nb.analysis.active_memory import MemoryPicture, memory_devices, memory_log, picture_of
from maiprof_nb.analysis.memory_by_event import by_event
from maiprof_nb.analysis.memory_groups import GROUPINGS
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets.views._memory_colours import colours_of
from tests.conftest import CORPUS

COLUMNS = 333


@pytest.mark.parametrize("by", list(GROUPINGS))
@pytest.mark.parametrize(
    "name",
    [
        "cs336-charan/memory_snapshot.pickle.gz",
        "cs336-kk/memory_ctx256_fullstep.pickle.gz",
        "flexgen/1.3b_snapshot_a.pickle",
        "octree-nca/my_snapshot_5.pickle",
        "select-n/snapshot_llama_streams.pickle.gz",
    ],
)
def test_all_that_is_allocated_is_drawn(name, by):
    """To the byte, at three zooms, by time and by event, with half of it lit by a search."""
    path = CORPUS / "memory" / name
    if not path.exists():
        pytest.skip(f"no corpus at {CORPUS}: set MAIPROF_CORPUS")
    session = maiprof_nb.load(path)
    for device in memory_devices(session):
        log = memory_log(session, device)
        bright = np.random.default_rng(0).random(len(log.allocations)) < 0.5
        keys = colours_of(session, log, by).keys(bright)
        for drawn in (log, by_event(log)):
            for share in (1, 10, 100):
                for rows in (None, 300):
                    picture = picture_of(
                        drawn, _part(drawn.span, share), columns=COLUMNS, max_bands=300,
                        rows=rows, groups=keys,
                    )  # fmt: skip
                    _is_whole(picture)


def _part(span: TimeWindow, share: int) -> TimeWindow:
    start = span.start_ns + (span.dur_ns // 3 if share > 1 else 0)
    return TimeWindow(start, min(start + max(span.dur_ns // share, 1), span.end_ns))


def _is_whole(picture: MemoryPicture) -> None:
    named = picture.merged.bytes_.sum(axis=0)
    bands = zip(picture.first_column, picture.end_column, picture.size_bytes, strict=True)
    for first, end, size in bands:
        named[int(first) : int(end)] += size
    known = ~np.isnan(picture.allocated_bytes)
    assert (named[~known] == 0).all()
    assert (named[known] + picture.rest_bytes[known] == picture.allocated_bytes[known]).all()
