"""The regression solver against scikit-learn's, which minimizes the same objective."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression as Sklearn

from rlstate.probes.logistic import LogisticRegression


def problem(seed, n=400, width=6, n_classes=3, correlated=False):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, width))
    if correlated:
        rows = rows @ rng.standard_normal((width, width)) * np.logspace(0, -3, width)
    classes = (rows @ rng.standard_normal((width, n_classes)) / rows.std() + rng.gumbel(size=(n, n_classes))).argmax(1)
    return (rows - rows.mean(0)) / rows.std(0), classes


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("correlated", [False, True])
def test_the_minimum_is_that_of_scikit_learn(C, correlated):
    rows, classes = problem(0, correlated=correlated)
    fit = LogisticRegression(rows, classes, 3).fit(C, tolerance=1e-7)
    peer = Sklearn(C=C, tol=1e-10, max_iter=10_000, solver="newton-cholesky").fit(rows, classes)
    assert fit.converged
    np.testing.assert_allclose(fit.weights, peer.coef_, atol=2e-4 * np.abs(peer.coef_).max())
    bias = fit.bias - fit.bias.mean()  # the bias is free: only its differences are determined
    np.testing.assert_allclose(bias, peer.intercept_ - peer.intercept_.mean(), atol=1e-3)


def test_a_warm_start_ends_where_a_cold_one_does():
    rows, classes = problem(1)
    regression = LogisticRegression(rows, classes, 3)
    cold = regression.fit(10.0, tolerance=1e-7)
    warm = regression.fit(10.0, regression.fit(0.01), tolerance=1e-7)
    np.testing.assert_allclose(warm.weights, cold.weights, atol=1e-4)
    assert regression.fit(10.0, cold, tolerance=1e-6).iterations <= 1


def test_running_out_of_iterations_is_reported():
    rows, classes = problem(2)
    fit = LogisticRegression(rows, classes, 3).fit(1.0, tolerance=1e-8, max_iterations=2)
    assert not fit.converged
    assert fit.iterations == 2
