"""What a piece of device work is: compute, communication, memcpy or memset."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

KINDS = ("compute", "communication", "memcpy", "memset")

# Names of collective libraries' kernels. A name that merely begins with "hip" is not one.
_COMMUNICATION = re.compile(
    r"nccl|rccl|msccl|oneccl|hccl|nvshmem|deep_ep"
    r"|cross_device_reduce|(?:one|two)_shot_all_?reduce|multimem_all_?(?:reduce|gather)"
    r"|custom_all_?reduce",
    re.IGNORECASE,
)
_BY_CATEGORY = {
    "gpu_memcpy": "memcpy",
    "Memcpy": "memcpy",
    "gpu_memset": "memset",
    "Memset": "memset",
}


def kinds(
    categories: pd.Categorical, names: pd.Categorical, *, collective: list[bool]
) -> pd.Categorical:
    """Kind of each piece of work, from its category, its name and its collective's args."""
    by_name = np.array([bool(_COMMUNICATION.search(str(n))) for n in names.categories], dtype=bool)
    communicates = np.array(collective, dtype=bool)
    named = names.codes >= 0
    communicates[named] |= by_name[names.codes[named]]
    codes = np.where(communicates, KINDS.index("communication"), KINDS.index("compute"))
    for code, category in enumerate(categories.categories):
        if category in _BY_CATEGORY:
            codes[categories.codes == code] = KINDS.index(_BY_CATEGORY[category])
    return pd.Categorical.from_codes(codes, categories=pd.Index(KINDS, dtype="str"))
