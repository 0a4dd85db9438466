"""docs/findings.md says what the rules say."""

from __future__ import annotations

import importlib.util
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "findings.md"


def test_page_is_the_generated_one() -> None:
    spec = importlib.util.spec_from_file_location(
        "make_findings", PAGE.with_name("make_findings.py")
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert PAGE.read_text(encoding="utf-8") == module.text(), "run: python docs/make_findings.py"
