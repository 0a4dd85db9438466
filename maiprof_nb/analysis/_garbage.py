"""Names of Python's garbage collections."""

from __future__ import annotations

import re

# `Python GC`, gc.collect() as the interpreter names it, and ranges of the user's; but no function
# of a file that merely has such a name.
COLLECTION = re.compile(
    r"^(?:Python )?gc\b(?!.*\.py)|\bgc\.collect\b|^<built-in function collect>$"
    r"|^[^()]*garbage.?collect[^()]*$",
    re.IGNORECASE,
)
