"""Multinomial logistic regression, as the probes need it: a path over C with warm starts, and convergence that is reported.

The objective is scikit-learn's, ½‖W‖² + C Σ cross-entropy with a free bias (the tests compare the two). Why not its solver:
features of one encoder are strongly correlated (the eigenvalues of their covariance span eight decades), where plain L-BFGS
stops at its limit of iterations; and a fit that runs in a worker thread must not speak through Python's global warnings.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize


class Fit(NamedTuple):
    """Scores are ``x @ weights.T + bias``."""

    weights: NDArray[np.float64]  # [K, F]
    bias: NDArray[np.float64]  # [K]
    converged: bool
    iterations: int


class LogisticRegression:
    """The problem for one set of standardized rows; `fit` solves it for one C, starting from an earlier fit.

    Args:
        rows: float64[n, F], centred (the preconditioner takes their second moments for a covariance).
        classes: int[n], from 0 to `n_classes` − 1.
    """

    def __init__(self, rows: NDArray[np.float64], classes: NDArray[np.int64], n_classes: int):
        self.rows, self.classes, self.n_classes = rows, classes, n_classes
        self._one_hot = np.zeros((len(rows), n_classes))
        self._one_hot[np.arange(len(rows)), classes] = 1.0
        variances, self._axes = np.linalg.eigh(rows.T @ rows / len(rows))
        self._variances = variances.clip(min=0.0)

    def fit(self, C: float, start: Fit | None = None, tolerance: float = 3e-4, max_iterations: int = 1000) -> Fit:
        """The minimum for regularization `C`; converged when no coordinate of the preconditioned gradient exceeds
        `tolerance`, which bounds how far the mean loss is from its minimum by about K F tolerance² / 2.
        """
        n, width = self.rows.shape
        shape = (self.n_classes, width + 1)
        if start is None:
            start = Fit(np.zeros((self.n_classes, width)), np.zeros(self.n_classes), False, 0)

        # The Hessian is about (mean p(1 − p)) covariance + penalty. In the covariance's axes that is diagonal, and so is the
        # penalty: scaled by its inverse square root, all directions are about equally curved.
        p = _softmax(self.rows @ start.weights.T + start.bias)
        penalty = 1.0 / (C * n)
        scale = 1.0 / np.sqrt(float((p * (1.0 - p)).mean()) * self._variances + penalty)
        rows = self.rows @ (self._axes * scale)
        penalties = penalty * scale**2

        def loss(flat: NDArray) -> tuple[float, NDArray]:
            w = flat.reshape(shape)
            scores = rows @ w[:, :-1].T
            scores += w[:, -1]
            scores -= scores.max(1, keepdims=True)
            chosen = np.einsum("nk,nk->n", scores, self._one_hot)
            np.exp(scores, out=scores)
            total = scores.sum(1)
            shrunk = w[:, :-1] * penalties
            value = float((np.log(total) - chosen).mean() + 0.5 * (w[:, :-1] * shrunk).sum())
            scores /= total[:, None]
            scores -= self._one_hot
            gradient = np.empty(shape)
            gradient[:, :-1] = scores.T @ rows
            gradient[:, -1] = scores.sum(0)
            gradient /= n
            gradient[:, :-1] += shrunk
            return value, gradient.ravel()

        initial = np.concatenate([(start.weights @ self._axes) / scale, start.bias[:, None]], 1)
        found = minimize(
            loss,
            initial.ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": max_iterations, "maxfun": 10 * max_iterations, "gtol": tolerance, "ftol": 1e-14},
        )
        w = found.x.reshape(shape)
        weights = (w[:, :-1] * scale) @ self._axes.T
        return Fit(weights, w[:, -1].copy(), bool(found.success), int(found.nit))


def _softmax(scores: NDArray) -> NDArray:
    scores = np.exp(scores - scores.max(1, keepdims=True))
    return scores / scores.sum(1, keepdims=True)
