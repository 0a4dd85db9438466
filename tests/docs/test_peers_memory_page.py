"""docs/peers_memory.md says what both sides say, torch run live, and explains what differs."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "peers_memory.md"


def test_page_is_the_generated_one(corpus: Path) -> None:
    pytest.importorskip("torch.cuda._memory_viz")
    spec = importlib.util.spec_from_file_location(
        "make_peers_memory", PAGE.with_name("make_peers_memory.py")
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rows = list(module.rows(corpus))
    assert len({row.file for row in rows}) == 30
    assert [row for row in rows if row.why == module._UNEXPLAINED] == []
    exact = [row for row in rows if row.figure.startswith(("reserved", "segments", "allocated"))]
    assert {row.why for row in exact} <= {"same", module._NO_SUM}
    assert PAGE.read_text(encoding="utf-8") == module.page(rows), (
        "run: python docs/make_peers_memory.py"
    )
