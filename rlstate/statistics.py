"""Intervals over seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def mean_interval(
    values: Sequence[float], confidence: float = 0.95, resamples: int = 10_000
) -> tuple[float, float, float]:
    """Mean and its percentile bootstrap interval over seeds, the paper's (Table 1). One value: no interval (NaN).

    Five seeds are few: such an interval is narrower than its name says. Every seed is shown beside it.
    """
    sample = np.asarray(values, dtype=float)
    if len(sample) == 0:
        return np.nan, np.nan, np.nan
    if len(sample) == 1:
        return float(sample[0]), np.nan, np.nan
    draws = np.random.default_rng(0).integers(0, len(sample), (resamples, len(sample)))
    low, high = np.quantile(sample[draws].mean(1), [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(sample.mean()), float(low), float(high)
