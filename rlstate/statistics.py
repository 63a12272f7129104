"""Intervals over seeds, differences between paired arms, proportions, rank correlation, ROC-AUC: what three to ten seeds allow.

A cell of seeds has a t interval, which keeps its promise at n = 3, where a percentile bootstrap (the paper's, in its Table 1)
covers about three in four instead of 95 %. The bootstrap is for aggregates over many tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from math import factorial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats


class Interval(NamedTuple):
    """A figure and the ends of its interval, NaN where there is no interval."""

    value: float
    low: float
    high: float


class Difference(NamedTuple):
    """The mean difference of two arms over the `n` seeds that both have, and its t interval."""

    value: float
    low: float
    high: float
    n: int


class Correlation(NamedTuple):
    """Spearman's ρ of `n` pairs, and the share of the pairings whose |ρ| is at least as large; `exact`: of all of them."""

    rho: float
    p: float
    n: int
    exact: bool


def t_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """The mean of a sample and its t interval, mean ± t(n − 1) s/√n. One value: no interval (NaN); none: NaN."""
    sample = np.asarray(values, dtype=float)
    if len(sample) < 2:
        return Interval(float(sample[0]) if len(sample) else np.nan, np.nan, np.nan)
    half = stats.t.ppf((1 + confidence) / 2, len(sample) - 1) * sample.std(ddof=1) / np.sqrt(len(sample))
    mean = float(sample.mean())
    return Interval(mean, mean - float(half), mean + float(half))


def paired_difference(arm: Mapping[int, float], base: Mapping[int, float], confidence: float = 0.95) -> Difference:
    """`arm` − `base`, both {seed: figure}, over the seeds that both have. Of one seed there is no interval, of none no mean.

    Seeds are paired because a seed's random play, evaluation episodes and (encoders alike) first weights are the same in both.
    """
    shared = sorted(arm.keys() & base.keys())
    return Difference(*t_interval([arm[seed] - base[seed] for seed in shared], confidence), len(shared))


def bootstrap_over_seeds(
    groups: Sequence[ArrayLike],
    statistic: Callable[[NDArray[np.float64]], float] = np.mean,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """A statistic of the tasks' means, and its percentile interval when the seeds within each task are drawn anew.

    The tasks are those that they are: the interval says what other seeds would have given, not other tasks.

    Args:
        groups: a task each, float[seeds] or float[seeds, F] of F figures; seeds may differ in number.
        statistic: of the means, float[tasks] or float[tasks, F].
    Raises:
        ValueError: no group, or a group without seeds.
    """
    samples = [np.asarray(group, dtype=float) for group in groups]
    if not samples or any(len(sample) == 0 for sample in samples):
        raise ValueError("there is nothing to resample: give at least one task, and at least one seed of each.")
    random = np.random.default_rng(seed)
    drawn = np.empty((resamples, len(samples), *samples[0].shape[1:]))
    for i, sample in enumerate(samples):
        drawn[:, i] = sample[random.integers(0, len(sample), (resamples, len(sample)))].mean(1)
    found = np.array([statistic(means) for means in drawn])
    low, high = np.quantile(found, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(statistic(np.stack([sample.mean(0) for sample in samples]))), float(low), float(high))


def wilson(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """A proportion and Wilson's score interval. Of n = 0: NaN.

    Raises:
        ValueError: `successes` outside 0…n.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} of {n} is no proportion: give 0 ≤ successes ≤ n.")
    if n == 0:
        return Interval(np.nan, np.nan, np.nan)
    ends = stats.binomtest(successes, n).proportion_ci(confidence_level=confidence, method="wilson")
    return Interval(successes / n, float(ends.low), float(ends.high))


MAX_EXACT = 9
"""Up to so many pairs all n! pairings are counted (362 880 of nine)."""


def spearman(x: Sequence[float], y: Sequence[float], resamples: int = 100_000, seed: int = 0) -> Correlation:
    """Spearman's rank correlation with a two-sided permutation p; ties have mean ranks, ±∞ is a value like others.

    Of at most nine pairs every pairing is counted; of more, `resamples` random ones and the one observed. Fewer than
    three pairs, or a constant: ρ and p are NaN.

    Raises:
        ValueError: lengths that differ, or NaN among the values.
    """
    if len(x) != len(y):
        raise ValueError(f"{len(x)} and {len(y)} values are no pairs: give as many of one as of the other.")
    a, b = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if np.isnan(a).any() or np.isnan(b).any():
        raise ValueError("NaN has no rank: leave out the pairs in which a figure is undefined.")
    n, exact = len(a), len(a) <= MAX_EXACT
    if n < 3 or len(set(a)) == 1 or len(set(b)) == 1:
        return Correlation(np.nan, np.nan, n, exact)
    u, v = (ranks - ranks.mean() for ranks in (stats.rankdata(a), stats.rankdata(b)))
    u, v = u / np.linalg.norm(u), v / np.linalg.norm(v)
    rho = float(u @ v)
    if exact:
        order = np.fromiter(permutations(range(n)), dtype=np.dtype((np.int8, n)), count=factorial(n))
        others = v[order] @ u
    else:
        others = np.append(np.random.default_rng(seed).permuted(np.tile(v, (resamples, 1)), axis=1) @ u, rho)
    return Correlation(rho, float(np.mean(np.abs(others) >= abs(rho) - 1e-9)), n, exact)


def roc_auc(scores: Sequence[float], positive: Sequence[bool]) -> float:
    """The chance that a positive has a higher score than a negative, ties half (Mann–Whitney); ±∞ is a value like others.

    NaN, undefined, where there is only one class.

    Raises:
        ValueError: lengths that differ, or NaN among the scores.
    """
    if len(scores) != len(positive):
        raise ValueError(f"{len(scores)} scores and {len(positive)} labels: give as many of one as of the other.")
    values, of = np.asarray(scores, dtype=float), np.asarray(positive, dtype=bool)
    if np.isnan(values).any():
        raise ValueError("NaN is no score: leave out what has none.")
    n_positive, n_negative = int(of.sum()), int((~of).sum())
    if not n_positive or not n_negative:
        return np.nan
    rank_sum = stats.rankdata(values)[of].sum() - n_positive * (n_positive + 1) / 2
    return float(rank_sum / (n_positive * n_negative))
