"""Names of calls that compile or load code.

Only compiling: cache look-ups, guards and the frames round compiled regions
(``torch/_dynamo/eval_frame.py``, ``torch/_inductor/output_code.py``) run in every call of a
compiled model, long after the last compilation.
"""

from __future__ import annotations

import re

COMPILING = re.compile(
    r"^dynamo$|^entire_frame_compile$|\(dynamo_timed\)$"
    r"|torch/_dynamo/convert_frame\.py\(\d+\): (?:__call__|_?compile)"
    r"|torch/_inductor/(?:compile_fx|codecache|async_compile)\.py\(\d+\): (?:compile|_compile|load)"
    r"|triton/compiler/compiler\.py\(\d+\): compile|triton/runtime/jit\.py\(\d+\): _do_compile"
)
LOADING_CODE = re.compile(
    r"nvrtc|(?:cu|hip)Module(?:Load|LoadData|LoadDataEx)$|cuLibraryLoad"
    r"|torch/_inductor/runtime/triton_heuristics\.py\(\d+\): "
    r"(?:_?precompile|autotune_to_one_config|benchmark_all_configs|coordinate_descent)"
)
