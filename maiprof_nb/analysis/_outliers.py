"""When one of many like values stands out."""

from __future__ import annotations

SIGMA_OF_MAD = 1.4826  # standard deviation over median absolute deviation, of a normal spread
FAR_IN_SIGMA = 5.0
FAR_SHARE = 0.2  # of the median step: steps that hardly vary make any difference look far
