"""Tables of the same columns -> one table."""

from __future__ import annotations

import numpy as np
import pandas as pd
from pandas.api.types import union_categoricals


def join(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """Concatenate, keeping categories as categories."""
    if len(parts) == 1:
        return parts[0]
    ends = np.cumsum([0, *(len(part) for part in parts)])
    for name, dtype in parts[0].dtypes.items():
        if dtype == "category":
            merged = union_categoricals([part[name] for part in parts])
            parts = [
                part.assign(**{str(name): merged[ends[i] : ends[i + 1]]})
                for i, part in enumerate(parts)
            ]
    return pd.concat(parts, ignore_index=True)
