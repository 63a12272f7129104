"""The linear probe: can the latent state be read from the features by a linear map? (paper §4; docs/definitions.md)

Rows of one episode resemble each other, so training, development and test rows are split by episode, always: the rows of
an episode are on one side. `row_split_probe` is the only exception and is there to show what it costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from rlstate.control import Stream, generator
from rlstate.probes.logistic import Fit, LogisticRegression

GRID = (0.01, 0.1, 1.0, 10.0, 100.0)
"""Regularization C, scikit-learn's: ½‖W‖² + C Σ cross-entropy over standardized features."""

UNDEFINED_BELOW = 0.05
"""Where 1 − majority is less there is next to nothing to recover, and the gap is undefined (docs/definitions.md)."""

_SPLIT, _ROW_SPLIT = 0, 1  # iterations of Stream.PROBE


class Split(NamedTuple):
    """Indices of episodes, int[...] each, sorted, disjoint, and together all of them."""

    train: NDArray[np.int64]
    development: NDArray[np.int64]
    test: NDArray[np.int64]


def split_episodes(n_episodes: int, seed: int) -> Split:
    """50 / 20 / 30 % of the episodes; raises ValueError for fewer than 4."""
    if n_episodes < 4:
        raise ValueError(f"{n_episodes} episodes cannot be split into training, development and test: give at least 4.")
    return _split(n_episodes, generator(seed, Stream.PROBE, _SPLIT))


def _split(n: int, rng: np.random.Generator) -> Split:
    order = rng.permutation(n)
    train, development = round(0.5 * n), max(1, round(0.2 * n))
    return Split(*(np.sort(part) for part in np.split(order, [train, train + development])))


@dataclass(frozen=True)
class ProbeResult:
    """What a probe found on its test episodes, and the linear map itself.

    `gap` = accuracy − majority; `recovery` = gap / (1 − majority); `recovery_balanced` = (balanced − 1/K) / (1 − 1/K) over
    the K states present in the test episodes. None where undefined, with the reason in `notes`. `gap_se` is clustered by
    episode. `by_timestep` has lists over t: accuracy, majority (the training episodes' majority class of that step), rows.
    """

    accuracy: float
    majority: float
    gap: float | None
    gap_se: float | None
    balanced: float
    recovery: float | None
    recovery_balanced: float | None
    n_classes: int  # in the training rows
    C: float | None
    converged: bool
    iterations: int
    by_timestep: dict[str, list[float | None]]
    rows: dict[str, int]
    notes: tuple[str, ...]
    # The map, in standardized space: scores are ((features − mean) / scale) @ weights.T + bias.
    classes: NDArray[np.int64] = field(repr=False)  # [K], sorted
    weights: NDArray[np.float64] = field(repr=False)  # [K, F]; 0 for features that are constant in training
    bias: NDArray[np.float64] = field(repr=False)  # [K]
    mean: NDArray[np.float64] = field(repr=False)  # [F]
    scale: NDArray[np.float64] = field(repr=False)  # [F]; 1 for features that are constant in training
    split: Split | None = field(repr=False, default=None)  # None: split by row

    def predict(self, features: ArrayLike) -> NDArray[np.int64]:
        """float[..., F] → int[...], the predicted labels."""
        standard = (to_numpy(features).astype(np.float64) - self.mean) / self.scale
        return self.classes[(standard @ self.weights.T + self.bias).argmax(-1)]

    def summary(self) -> dict[str, Any]:
        """The figures, JSON-able; without the map."""
        names = (
            "accuracy", "majority", "gap", "gap_se", "balanced", "recovery", "recovery_balanced", "n_classes",
            "C", "converged", "iterations", "by_timestep", "rows",
        )  # fmt: skip
        return {**{name: getattr(self, name) for name in names}, "notes": list(self.notes)}


def linear_probe(
    features: Any, labels: Any, seed: int, *, grid: Sequence[float] = GRID, max_rows: int | None = 20_000
) -> ProbeResult:
    """Probe features float[T, B, F] for labels int[T, B], split by episode (axis 1).

    Standardized on the training rows; multinomial logistic regression with the C of `grid` that is most accurate on the
    development episodes (the smallest of equals), scored once on the test episodes. Labels not seen in training count as
    errors. With more than `max_rows` training rows, whole training episodes are left out.

    Raises:
        ValueError: shapes that do not fit, features that are not finite, fewer than 4 episodes, or an empty grid.
    """
    features, labels = _checked(features, labels, grid)
    split = split_episodes(labels.shape[1], seed)
    masks = [_episode_mask(labels.shape, part) for part in split]
    if max_rows is not None:
        kept = generator(seed, Stream.PROBE, _SPLIT).permutation(split.train)[: max(1, max_rows // len(labels))]
        masks[0] = _episode_mask(labels.shape, kept)
    return _probe(features, labels, masks, grid, split)


def quick_probe(features: Any, labels: Any, seed: int) -> ProbeResult:
    """The same probe with C = 1 and a looser tolerance, for the curve during training."""
    features, labels = _checked(features, labels, (1.0,))
    split = split_episodes(labels.shape[1], seed)
    masks = [_episode_mask(labels.shape, part) for part in split]
    return _probe(features, labels, masks, (1.0,), split, tolerance=2e-3)


def row_split_probe(features: Any, labels: Any, seed: int, *, grid: Sequence[float] = GRID) -> ProbeResult:
    """DIAGNOSTIC ONLY, for comparison with the paper's earlier figures: rows of one episode fall on both sides."""
    features, labels = _checked(features, labels, grid)
    parts = _split(labels.size, generator(seed, Stream.PROBE, _ROW_SPLIT))
    masks = []
    for part in parts:
        mask = np.zeros(labels.size, bool)
        mask[part] = True
        masks.append(mask.reshape(labels.shape))
    return _probe(features, labels, masks, grid, None, ("split by row: rows of one episode leak into the test",))


def fit_weights(features: NDArray, labels: NDArray[np.int64], probe: ProbeResult) -> NDArray[np.float64]:
    """float[K, F]: the weights of a probe for other labels int[T, B] of the same classes, with the same training episodes,
    standardization and C; rows of 0 for classes that have no training rows.
    """
    assert probe.split is not None
    train = _episode_mask(labels.shape, probe.split.train)
    rows = (features[train].astype(np.float64) - probe.mean) / probe.scale
    rows[:, (probe.weights == 0.0).all(0)] = 0.0
    present, targets = np.unique(labels[train], return_inverse=True)
    fit = LogisticRegression(rows, targets, len(present)).fit(probe.C or 1.0, tolerance=2e-3)
    weights = np.zeros(probe.weights.shape)
    weights[np.searchsorted(probe.classes, present)] = fit.weights
    return weights


def to_numpy(values: Any) -> NDArray:
    """A numpy array of an array or of a tensor on any device."""
    return values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)


def _checked(features: Any, labels: Any, grid: Sequence[float]) -> tuple[NDArray, NDArray[np.int64]]:
    features, labels = to_numpy(features), to_numpy(labels)
    if features.ndim != 3 or labels.shape != features.shape[:2] or 0 in features.shape:
        raise ValueError(
            f"a probe was given features {list(features.shape)} and labels {list(labels.shape)}; expected features "
            "[T, B, F] and labels [T, B], a label for each step of each episode (q_0 … q_{T−1}, without q_T)."
        )
    if not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(f"a probe's labels are {labels.dtype}; expected integers, the numbers of the states.")
    if not np.isfinite(features).all():
        raise ValueError("a probe's features hold NaN or infinity; did the training diverge?")
    if not len(grid) or min(grid) <= 0:
        raise ValueError(f"a probe's grid of C is {list(grid)}; give at least one number, all above 0.")
    return features, labels.astype(np.int64)


def _episode_mask(shape: tuple[int, ...], episodes: NDArray[np.int64]) -> NDArray[np.bool_]:
    mask = np.zeros(shape, bool)
    mask[:, episodes] = True
    return mask


def _probe(
    features: NDArray,
    labels: NDArray[np.int64],
    masks: Sequence[NDArray[np.bool_]],
    grid: Sequence[float],
    split: Split | None,
    notes: tuple[str, ...] = (),
    tolerance: float = 3e-4,
) -> ProbeResult:
    train, development, test = masks
    rows = features[train].astype(np.float64)
    mean, scale = rows.mean(0), rows.std(0)
    # Rounding leaves a constant feature a deviation of about its size × 1e-16 (1e-7 in float32): not information.
    constant = scale <= 1e-6 * np.abs(mean) + 1e-12
    scale[constant] = 1.0
    rows = (rows - mean) / scale
    rows[:, constant] = 0.0
    classes, targets = np.unique(labels[train], return_inverse=True)

    def scores_of(mask: NDArray[np.bool_], fit: Fit) -> NDArray[np.bool_]:
        """bool[rows]: which rows of the mask the fit gets right."""
        standard = (features[mask].astype(np.float64) - mean) / scale
        return classes[(standard @ fit.weights.T + fit.bias).argmax(1)] == labels[mask]

    chosen: float | None = None
    if len(classes) == 1:
        fit = Fit(np.zeros((1, rows.shape[1])), np.zeros(1), True, 0)
    else:
        fit, chosen = _fit_path(
            LogisticRegression(rows, targets, len(classes)), grid, development, scores_of, tolerance
        )
        if not fit.converged:
            notes += (f"the regression did not converge in {fit.iterations} iterations",)

    fit.weights[:, constant] = 0.0
    correct = np.zeros(labels.shape)
    correct[test] = scores_of(test, fit)
    majority_class = classes[np.bincount(targets).argmax()]
    return ProbeResult(
        **_figures(correct, labels, labels == majority_class, test, notes),
        n_classes=len(classes),
        C=chosen,
        converged=fit.converged,
        iterations=fit.iterations,
        by_timestep=_by_timestep(correct, labels, train, test),
        rows={"train": int(train.sum()), "development": int(development.sum()), "test": int(test.sum())},
        classes=classes,
        weights=fit.weights,
        bias=fit.bias,
        mean=mean,
        scale=scale,
        split=split,
    )


def _fit_path(
    problem: LogisticRegression, grid: Sequence[float], development: NDArray[np.bool_], scores_of: Any, tolerance: float
) -> tuple[Fit, float]:
    """The fit with the best C and that C: from strong to weak regularization, each fit starting where the last one ended.

    The path is walked to a loose tolerance, which is enough to choose by, and the chosen fit is then finished.
    """
    if len(grid) == 1:
        return problem.fit(grid[0], None, tolerance), float(grid[0])
    best, best_fit, best_C = -1.0, None, 0.0
    fit = None
    for C in sorted(grid):
        fit = problem.fit(C, fit, max(tolerance, 1e-3))
        accuracy = float(scores_of(development, fit).mean()) if development.any() else 0.0
        if accuracy > best:
            best, best_fit, best_C = accuracy, fit, float(C)
        if best == 1.0:
            break  # a weaker regularization cannot be better, and the smallest of equals is wanted
    return problem.fit(best_C, best_fit, tolerance), best_C


def _figures(
    correct: NDArray[np.float64],
    labels: NDArray[np.int64],
    guessed: NDArray[np.bool_],
    test: NDArray[np.bool_],
    notes: tuple[str, ...],
) -> dict[str, Any]:
    """The figures on the test rows; `guessed` is where always answering the majority class is right."""
    accuracy, majority = float(correct[test].mean()), float(guessed[test].mean())
    present, inverse = np.unique(labels[test], return_inverse=True)
    balanced = float((np.bincount(inverse, correct[test]) / np.bincount(inverse)).mean())
    gap = gap_se = recovery = recovery_balanced = None
    if 1.0 - majority < UNDEFINED_BELOW:
        notes += (f"undefined: the majority class is right on {majority:.3f} of the test rows",)
    else:
        gap = accuracy - majority
        gap_se = clustered_se(correct - guessed, test)
        recovery = gap / (1.0 - majority)
    if len(present) > 1:
        recovery_balanced = (balanced - 1.0 / len(present)) / (1.0 - 1.0 / len(present))
    return {
        "accuracy": accuracy,
        "majority": majority,
        "gap": gap,
        "gap_se": gap_se,
        "balanced": balanced,
        "recovery": recovery,
        "recovery_balanced": recovery_balanced,
        "notes": notes,
    }


def clustered_se(values: NDArray, where: NDArray[np.bool_]) -> float | None:
    """Standard error of the mean of values float[T, B] over `where` bool[T, B], episodes (axis 1) being independent."""
    n = int(where.sum())
    episodes = int(where.any(0).sum())
    if episodes < 2:
        return None
    residual = np.where(where, values - values[where].mean(), 0.0).sum(0)
    return float(np.sqrt(episodes / (episodes - 1) * (residual**2).sum()) / n)


def _by_timestep(
    correct: NDArray[np.float64], labels: NDArray[np.int64], train: NDArray[np.bool_], test: NDArray[np.bool_]
) -> dict[str, list[float | None]]:
    accuracy: list[float | None] = []
    majority: list[float | None] = []
    for t in range(len(labels)):
        if not (test[t].any() and train[t].any()):  # possible under the row split only
            accuracy.append(None)
            majority.append(None)
            continue
        values, counts = np.unique(labels[t, train[t]], return_counts=True)
        accuracy.append(float(correct[t, test[t]].mean()))
        majority.append(float((labels[t, test[t]] == values[counts.argmax()]).mean()))
    return {"accuracy": accuracy, "majority": majority, "rows": [int(n) for n in test.sum(1)]}
