"""Finished runs as rows: what every table, figure and claim is made of.

A run tree (`result.json`, `config.yaml`, `metrics.jsonl` of each run) and a `results.jsonl` hold the same rows; the second is
small enough to be committed, and all that is left where the tree is gone. Either way a run is judged when it is read: its verdict
is what today's rule makes of its figures, whichever version measured them.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from rlstate.output import jsonable, write_atomically
from rlstate.probes.verdict import Thresholds, seed_averaged
from rlstate.runlog import DOES_NOT_DECIDE, RunFolder, find_runs

log = logging.getLogger("rlstate")

FILE = "results.jsonl"

# name in a row: where `result.json` has it
_FIGURES = {
    "val_n": "val_n",
    "val_n_se": "val_n_se",
    "gain": "gain",
    "gain_se": "gain_se",
    "ood_n": "ood_n",
    "probe_gap": "probe_gap",
    "probe_gap_se": "probe_gap_se",
    "balanced": "probe_balanced",
    "recovery": "recovery",
    "recovery_balanced": "recovery_balanced",
    "selectivity": "selectivity",
    "majority": "probe.majority",
    "sampled_gap": "controls.sampled.gap",
    "untrained_gap": "controls.untrained.gap",
    "untrained_recovery": "controls.untrained.recovery",
    "input_gap": "controls.input.gap",
    "input_last_k_gap": "controls.input_last_k.gap",
    "quotient_classes": "controls.quotient_classes",
    "quotient_recovery": "controls.quotient.recovery",
    "row_split_gap": "controls.row_split.gap",
    "row_split_recovery": "controls.row_split.recovery",
    "muted_val_n": "evaluation.muted.val_n",
    "muted_gap": "controls.muted.gap",
    "capacity": "capacity.accuracy",
    "capacity_ood": "capacity.ood_accuracy",
    "intervention": "intervention.success",
    "intervention_random": "intervention.random",
    "intervention_shuffled": "intervention.shuffled",
    "intervention_examples": "intervention.examples",
}
# threshold: the configuration key that sets it
_THRESHOLDS = {"recovery": "probe.recovery", "val_n": "probe.val_n", "capacity": "probe.saturated"}
UNTOLD = DOES_NOT_DECIDE | {"log_every"}


@dataclass(frozen=True)
class Row:
    """One finished run. Rows with the same `hash` and `task` differ in nothing but the seed.

    Attributes:
        config: the deciding configuration, flat: {"algorithm.name": "ppo", "emission.beta": 0.0, …}.
        figures: None where a figure is undefined, was not measured, or an older version did not have it.
        curve: [iteration, greedy val_n, probe gap] of each point of the curves.
        seconds: of training and measuring.
    """

    experiment: str
    hash: str
    task: str
    seed: int
    verdict: str
    config: dict[str, Any]
    figures: dict[str, float | None]
    oracle: dict[str, float | None]
    curve: list[list[float | None]]
    diagnostic: bool | None
    notes: list[str]
    seconds: float | None
    commit: str | None

    @property
    def key(self) -> tuple[str, str, int]:
        return self.hash, self.task, self.seed

    @property
    def thresholds(self) -> Thresholds:
        return Thresholds(**{name: self.config[key] for name, key in _THRESHOLDS.items() if key in self.config})

    @property
    def to_judge(self) -> dict[str, Any]:
        """What a verdict needs: the figures, whether capacity is saturated, and whether the task is diagnostic."""
        reached = self.capacity
        saturated = None if reached is None else reached >= self.thresholds.capacity
        return {**self.figures, "capacity_saturated": saturated, "diagnostic": self.diagnostic}

    @property
    def capacity(self) -> float | None:
        """Supervised accuracy, the lower of T and 4T."""
        at_t, at_4t = self["capacity"], self["capacity_ood"]
        return None if at_t is None or at_4t is None else min(at_t, at_4t)

    def __getitem__(self, figure: str) -> float | None:
        return self.figures.get(figure)


def row(folder: RunFolder) -> Row | None:
    """The row of a finished run; None of one that is not finished."""
    result = folder.read_result()
    if result is None:
        return None
    oracle = result["oracle"]
    curve = [
        [point["iteration"], _divided(point["greedy_success"], oracle["optimal"]), point.get("probe_gap")]
        for point in folder.read_metrics()
        if point.get("greedy_success") is not None
    ]
    config = {key: value for key, value in flat(folder.read_config()).items() if key.split(".")[0] not in UNTOLD}
    config |= {_THRESHOLDS[name]: value for name, value in result.get("thresholds", {}).items() if name in _THRESHOLDS}
    seconds = [result.get(key) for key in ("training_seconds", "measuring_seconds")]
    found = Row(
        experiment=result["experiment"],
        hash=result["hash"],
        task=result["task"],
        seed=int(result["seed"]),
        verdict=result["verdict"],
        config=config,
        figures={name: _rounded(_at(result, path)) for name, path in _FIGURES.items()},
        oracle={name: _rounded(value) for name, value in oracle.items()},
        curve=[[_rounded(value) for value in point] for point in curve],
        diagnostic=result.get("diagnostic"),
        notes=list(result.get("notes", [])),
        seconds=None if None in seconds else round(sum(seconds), 1),  # type: ignore[arg-type]
        commit=result.get("commit"),
    )
    return _judged(found)


def _judged(row: Row) -> Row:
    """The row with the verdict of today's rule, and with the untrained network's recovery where a version kept its gap alone.

    The probe and that control have the same labels, episodes and split, and so one majority class. A row whose recovery is
    undefined, or of a version that did not have it, keeps its verdict.
    """
    gap, majority = row["untrained_gap"], row["majority"]
    if "untrained_recovery" not in row.figures and gap is not None and majority is not None:
        row = replace(row, figures={**row.figures, "untrained_recovery": _rounded(gap / (1.0 - majority))})
    return row if row["recovery"] is None else replace(row, verdict=str(seed_averaged([row.to_judge], row.thresholds)))


def collect(root: str | Path) -> list[Row]:
    """The rows of every finished run below `root`, and of every `results.jsonl`; of two with one key the tree's own.

    Sorted by task, hash and seed. A damaged run or line is named and left out.
    """
    return merged(kept(root), finished(root))


def finished(root: str | Path) -> list[Row]:
    """The rows of the finished runs below `root`; a damaged one is named and left out."""
    rows = []
    for folder in find_runs(root):
        try:
            rows.append(row(folder))
        except (ValueError, KeyError, TypeError) as error:
            log.warning("%s is left out: %s", folder.path, error)
    return [each for each in rows if each is not None]


def kept(root: str | Path) -> list[Row]:
    """The rows of every `results.jsonl` below `root`."""
    return [each for path in sorted(Path(root).rglob(FILE)) for each in read_rows(path)]


def merged(*sources: Iterable[Row]) -> list[Row]:
    """One row of each run, that of the last source that has it, sorted by task, hash and seed."""
    found = {each.key: each for source in sources for each in source}
    return sorted(found.values(), key=lambda each: (each.task, each.hash, each.seed))


def unfinished(root: str | Path) -> list[Path]:
    """The folders of runs that were begun below `root` and have no result."""
    return [folder.path for folder in find_runs(root) if not folder.result_path.exists()]


def read_rows(path: str | Path) -> list[Row]:
    """The rows of a `results.jsonl`; lines that are not rows, or of a version with other fields, are named and left out."""
    known, rows = {field.name for field in fields(Row)}, []
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        try:
            given = json.loads(line)
            rows.append(_judged(Row(**{key: value for key, value in given.items() if key in known})))
        except (ValueError, TypeError, AttributeError) as error:
            log.warning("%s, line %d is left out: it is no row of this version (%s)", path, number, error)
    return rows


def write_rows(rows: Iterable[Row], path: str | Path) -> None:
    """A line a row, sorted: the same rows give the same bytes."""
    lines = (json.dumps(jsonable(asdict(each)), separators=(",", ":"), sort_keys=True) for each in merged(rows))
    write_atomically(Path(path), "".join(line + "\n" for line in lines).encode())


def cells(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows that differ in nothing but the seed, together, by seed."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for each in rows:
        groups.setdefault((each.hash, each.task), []).append(each)
    return [sorted(group, key=lambda each: each.seed) for group in groups.values()]


def flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """{"a": {"b": 1}} as {"a.b": 1}."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return found


def _at(result: Mapping[str, Any], path: str) -> Any:
    value: Any = result
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _rounded(value: Any) -> Any:
    return float(f"{value:.5g}") if isinstance(value, float) else value


def _divided(value: float, by: float) -> float | None:
    return value / by if by else None
