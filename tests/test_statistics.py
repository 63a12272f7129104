"""Statistics over seeds, against closed forms, SciPy, scikit-learn and counting by hand."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from rlstate.statistics import (
    bootstrap_over_seeds,
    paired_difference,
    roc_auc,
    spearman,
    t_interval,
    wilson,
)


def test_the_t_interval_of_a_table():
    """1, 2, 3: s = 1, t(2, .975) = 4.303, so 2 ± 4.303/√3."""
    found = t_interval([1.0, 2.0, 3.0])
    assert found == pytest.approx((2.0, 2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5), abs=1e-6)
    values = [0.3, 0.9, 0.8, 0.2, 0.35]
    low, high = stats.t.interval(0.9, 4, np.mean(values), stats.sem(values))
    assert t_interval(values, 0.9)[1:] == pytest.approx((low, high))


def test_too_few_values_have_no_interval():
    one, none = t_interval([0.4]), t_interval([])
    assert one.value == 0.4
    assert np.isnan([*one[1:], *none]).all()
    assert t_interval([0.5, 0.5]) == (0.5, 0.5, 0.5)


def test_the_t_interval_covers_where_the_bootstrap_does_not():
    rng = np.random.default_rng(0)
    inside = sum(low <= 0 <= high for _, low, high in (t_interval(rng.normal(size=3)) for _ in range(2000)))
    assert 0.935 * 2000 <= inside <= 0.965 * 2000


def test_differences_are_paired_by_seed():
    """Seeds 0, 1, 2 are in both: differences .1, .2, .3, of which s = .1. Unpaired they would be lost in the spread."""
    arm, base = {0: 0.9, 1: 0.5, 2: 0.4, 7: 99.0}, {2: 0.1, 1: 0.3, 0: 0.8, 5: -99.0}
    found = paired_difference(arm, base)
    half = 4.302653 * 0.1 / 3**0.5
    assert found == pytest.approx((0.2, 0.2 - half, 0.2 + half, 3), abs=1e-6)
    assert found.low < 0 < paired_difference(arm, base, confidence=0.8).low
    apart = paired_difference({0: 1.0}, {1: 1.0})
    assert apart.n == 0
    assert np.isnan(apart.value)


def test_the_bootstrap_resamples_seeds_and_not_tasks():
    """Tasks whose seeds agree have an interval without width, however far apart the tasks are."""
    assert bootstrap_over_seeds([[0.0, 0.0, 0.0], [1.0, 1.0]]) == (0.5, 0.5, 0.5)
    # One task of two seeds, 0 and 1: the mean is 0, ½ or 1 with chances ¼, ½, ¼; beside a constant one it is half of that.
    low, high = bootstrap_over_seeds([[0.0, 1.0], [0.0, 0.0]], confidence=0.95)[1:]
    assert (low, high) == (0.0, 0.5)
    middle = bootstrap_over_seeds([[0.0, 1.0], [0.0, 0.0]], confidence=0.4)
    assert middle == (0.25, 0.25, 0.25)


def test_the_bootstrap_of_several_figures_keeps_those_of_a_seed_together():
    """Two figures of a seed that add up to 1: so do their means, in every sample."""
    groups = [[[0.2, 0.8], [0.7, 0.3], [0.5, 0.5]], [[0.1, 0.9], [0.9, 0.1]]]
    found = bootstrap_over_seeds(groups, lambda means: float(means.sum() / len(means)))
    assert found == pytest.approx((1.0, 1.0, 1.0))
    assert bootstrap_over_seeds(groups, lambda means: means[0, 0]) == bootstrap_over_seeds(
        groups, lambda means: means[0, 0]
    )


def test_the_bootstrap_needs_seeds():
    with pytest.raises(ValueError, match="at least one seed of each"):
        bootstrap_over_seeds([[0.1], []])
    with pytest.raises(ValueError, match="at least one task"):
        bootstrap_over_seeds([])


def test_wilsons_interval_by_its_formula():
    """The paper's: 89 of 103 is .86 [.78, .92]; and the score interval's closed form."""
    assert [round(each, 2) for each in wilson(89, 103)] == [0.86, 0.78, 0.92]
    for successes, n in ((0, 5), (3, 7), (20, 20)):
        z, p = stats.norm.ppf(0.975), successes / n
        centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
        assert wilson(successes, n) == pytest.approx((p, centre - half, centre + half))
    assert np.isnan(wilson(0, 0)).all()
    with pytest.raises(ValueError, match="4 of 3 is no proportion"):
        wilson(4, 3)


def test_spearmans_rho_is_scipys_and_p_counts_pairings():
    perfect = spearman([1, 2, 3, 4], [10, 20, 30, 40])
    assert perfect == (pytest.approx(1.0), pytest.approx(2 / 24), 4, True)  # and the reverse: |ρ| = 1 in 2 of 24
    x, y = [3, 1, 4, 1, 5, 9], [2, 7, 1, 8, 2, 8]  # ties in both
    found = spearman(x, y)
    assert found.rho == pytest.approx(stats.spearmanr(x, y).statistic)
    larger = [abs(stats.spearmanr(x, [y[i] for i in order]).statistic) >= abs(found.rho) - 1e-9
              for order in permutations(range(6))]  # fmt: skip
    assert found.p == pytest.approx(np.mean(larger))


def test_spearman_of_many_pairs_draws_pairings():
    rng = np.random.default_rng(1)
    x = rng.normal(size=14)
    y = x + 2 * rng.normal(size=14)
    found = spearman(x, y)
    exact = stats.permutation_test(
        (x,), lambda a: abs(stats.spearmanr(a, y).statistic), permutation_type="pairings", alternative="greater",
        n_resamples=2000, rng=np.random.default_rng(2),
    )  # fmt: skip
    assert not found.exact
    assert found.p == pytest.approx(exact.pvalue, abs=0.03)
    assert found == spearman(x, y)


def test_spearman_at_the_edges():
    assert np.isnan(spearman([1, 1, 1], [1, 2, 3])[:2]).all()
    assert np.isnan(spearman([1, 2], [1, 2]).rho)
    assert spearman([1.0, np.inf, 2.0, 0.0], [1, 3, 2, 0]).rho == pytest.approx(1.0)
    with pytest.raises(ValueError, match="NaN has no rank"):
        spearman([1, np.nan, 3], [1, 2, 3])
    with pytest.raises(ValueError, match="2 and 3 values"):
        spearman([1, 2], [1, 2, 3])


@pytest.mark.parametrize("seed", range(3))
def test_roc_auc_is_scikit_learns(seed):
    rng = np.random.default_rng(seed)
    scores, positive = rng.integers(0, 6, 30) / 5.0, rng.random(30) < 0.4
    assert roc_auc(scores, positive) == pytest.approx(roc_auc_score(positive, scores))


def test_roc_auc_at_the_edges():
    """Of −∞, 1, 1, 2 with the positives 1 and 2: pairs (1 > −∞), (1 = 1), (2 > −∞), (2 > 1): 3.5 of 4."""
    assert roc_auc([-np.inf, 1, 1, 2], [False, True, False, True]) == 3.5 / 4
    assert np.isnan(roc_auc([1, 2], [True, True]))
    assert np.isnan(roc_auc([], []))
    with pytest.raises(ValueError, match="1 scores and 2 labels"):
        roc_auc([1.0], [True, False])
    with pytest.raises(ValueError, match="NaN is no score"):
        roc_auc([np.nan], [True])
