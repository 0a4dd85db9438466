"""The rules: one fault a module, gathered in ``RULES``."""

from __future__ import annotations

from maiprof_nb.findings.rule import Rule
from maiprof_nb.findings.rules import input_bound, single_tensor_optimizer

RULES: tuple[Rule, ...] = tuple(module.RULE for module in (input_bound, single_tensor_optimizer))
