"""A run's folder: `config.yaml`, `metrics.jsonl`, `checkpoint.pt`, `result.json`. These files are the truth.

Everything is written beside its name and moved into place, so a kill at any moment leaves the old file or the new one.
The last good checkpoint is kept beside the newest (`checkpoint.previous.pt`). A damaged file is named, kept under
`<name>.damaged`, and never silently replaced.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch
import yaml

from rlstate.output import jsonable, write_atomically

log = logging.getLogger("rlstate")

T = TypeVar("T")

_RESULT_KEYS = ("experiment", "hash", "task", "seed", "folder", "verdict", "val_n", "oracle", "thresholds")


DOES_NOT_DECIDE = {
    "name", "tasks", "seeds", "device", "kernels", "stack", "processes", "threads", "logger", "paths", "checkpoint_every",
    "export", "dry_run",
}  # fmt: skip
"""Keys of a configuration that say what is run and where, not what numbers come out of one run."""


class RunBusy(RuntimeError):
    """Another process is working in this run's folder."""


def configuration_hash(decides: dict[str, Any]) -> str:
    """Twelve hexadecimal digits of what decides a run's numbers."""
    canonical = json.dumps(_canonical(decides), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]


def _canonical(value: Any) -> Any:
    """1 and 1.0 are one number, however they were typed."""
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


class RunFolder:
    """The files of one run. Reading never creates anything."""

    def __init__(self, path: str | Path):
        self.path = Path(path)

    @property
    def config_path(self) -> Path:
        return self.path / "config.yaml"

    @property
    def metrics_path(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def checkpoint_path(self) -> Path:
        return self.path / "checkpoint.pt"

    @property
    def previous_checkpoint_path(self) -> Path:
        return self.path / "checkpoint.previous.pt"

    @property
    def result_path(self) -> Path:
        return self.path / "result.json"

    @property
    def failure_path(self) -> Path:
        return self.path / "failed.json"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes out of the folder (an advisory lock that the system drops when a process dies).

        Raises:
            RunBusy: it is taken.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with open(self.path / ".lock", "a+") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise RunBusy(f"another process is working in {self.path}; wait for it or stop it first") from error
            yield

    # --- configuration ---------------------------------------------------------------------------------------------

    def write_config(self, config: dict[str, Any]) -> None:
        write_atomically(self.config_path, yaml.safe_dump(config, sort_keys=False, allow_unicode=True).encode())

    def read_config(self) -> dict[str, Any]:
        if not self.config_path.exists():
            raise FileNotFoundError(f"{self.path} is not a run's folder: it has no config.yaml")
        try:
            config = yaml.safe_load(self.config_path.read_text())
        except yaml.YAMLError as error:
            raise ValueError(
                f"{self.config_path} is damaged ({str(error).splitlines()[0]}); give the run's command again"
            ) from error
        if not isinstance(config, dict):
            raise ValueError(f"{self.config_path} is damaged (it holds no configuration); give the run's command again")
        return config

    # --- metrics ---------------------------------------------------------------------------------------------------

    def append_metrics(self, row: dict[str, Any]) -> None:
        with open(self.metrics_path, "ab") as handle:
            handle.write((json.dumps(jsonable(row)) + "\n").encode())

    def read_metrics(self) -> list[dict[str, Any]]:
        """Every complete row; a last line that a kill cut short is not one."""
        return list(_rows(self.metrics_path))

    def cut_metrics(self, iteration: int) -> None:
        """Drop the rows after `iteration`: they will be written again."""
        if self.metrics_path.exists():
            kept = [row for row in _rows(self.metrics_path) if row["iteration"] <= iteration]
            write_atomically(self.metrics_path, "".join(json.dumps(row) + "\n" for row in kept).encode())

    # --- checkpoint ------------------------------------------------------------------------------------------------

    def write_checkpoint(self, state: dict[str, Any]) -> None:
        buffer = io.BytesIO()
        torch.save(state, buffer)
        if self.checkpoint_path.exists():
            os.replace(self.checkpoint_path, self.previous_checkpoint_path)
        write_atomically(self.checkpoint_path, buffer.getvalue())

    def restore(self, use: Callable[[dict[str, Any]], T], map_location: str | torch.device = "cpu") -> T | None:
        """What `use` makes of the newest checkpoint that can be read and used; None where there is none.

        Damaged ones are named and set aside: those that cannot be read, and those that `use` raises on.
        """
        for path in (self.checkpoint_path, self.previous_checkpoint_path):
            if not path.exists():
                continue
            try:
                return use(torch.load(path, map_location=map_location, weights_only=True))
            except Exception as error:  # what torn bytes, or the wrong content, raise is anybody's guess
                set_aside(path, f"{type(error).__name__}: {error}".splitlines()[0])
        return None

    # --- result ----------------------------------------------------------------------------------------------------

    def write_result(self, result: dict[str, Any]) -> None:
        write_atomically(self.result_path, (json.dumps(jsonable(result), indent=2) + "\n").encode())
        self.failure_path.unlink(missing_ok=True)

    def read_result(self) -> dict[str, Any] | None:
        if not self.result_path.exists():
            return None
        try:
            result = json.loads(self.result_path.read_text())
            missing = [key for key in _RESULT_KEYS if key not in result]
            if missing:
                raise ValueError(f"it has no {missing[0]}")
            return result
        except (ValueError, TypeError) as error:
            set_aside(self.result_path, str(error))
            return None

    def write_failure(self, reason: str, iteration: int) -> None:
        write_atomically(
            self.failure_path, (json.dumps({"reason": reason, "iteration": iteration}, indent=2) + "\n").encode()
        )

    def clear_failure(self) -> None:
        self.failure_path.unlink(missing_ok=True)


def twin(folder: RunFolder) -> RunFolder | None:
    """A finished run with the same hash and seed, of an automaton with the same tables under another name; None: there is none.

    Folders are `<hash>/<task>/seed=<n>`, and a hash is of everything that decides a run's numbers but its seed.
    """
    seed, task = folder.path.name, folder.path.parent
    others = (RunFolder(other / seed) for other in sorted(task.parent.glob("*")) if other != task)
    return next((other for other in others if other.result_path.exists() and other.read_result() is not None), None)


def find_runs(root: str | Path) -> list[RunFolder]:
    """Every run below `root`, sorted by path: the folders that hold a config.yaml."""
    return [RunFolder(path.parent) for path in sorted(Path(root).rglob("config.yaml"))]


def set_aside(path: Path, reason: str) -> Path:
    """Keep a damaged file under another name and say so."""
    kept = path.with_name(path.name + ".damaged")
    number = 1
    while kept.exists():
        number += 1
        kept = path.with_name(f"{path.name}.damaged{number}")
    os.replace(path, kept)
    log.warning("%s is damaged (%s); kept as %s", path, reason, kept.name)
    return kept


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    with open(path, "rb") as handle:
        for line in handle:
            if not line.endswith(b"\n"):
                return
            try:
                row = json.loads(line)
            except ValueError:
                row = None
            if isinstance(row, dict) and "iteration" in row:
                yield row
            else:
                log.warning("%s: a line that is not a row was skipped: %.60r", path, line)
