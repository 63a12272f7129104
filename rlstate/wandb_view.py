"""W&B as a view of the run folders: one W&B run for each training run, grouped by configuration.

Rows are read back from `metrics.jsonl`, which stays the truth. With an account, curves are live; offline, each run is
exported in one go when it is finished, so that a fleet pays for one W&B run at a time. Everything here is called from the
main thread.
"""

from __future__ import annotations

import contextlib
import netrc
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from rlstate.plan import RunPlan
from rlstate.runlog import log


class Logger(Protocol):
    def update(self, plan: RunPlan, finished: Mapping[str, Any] | None, failed: str | None) -> None:
        """Called now and then for each run; `finished` is its result once there is one, `failed` why it ended without."""


class FilesOnly:
    """The run folders alone."""

    def update(self, plan: RunPlan, finished: Mapping[str, Any] | None, failed: str | None) -> None:
        pass


class WandbView:
    def __init__(self, project: str, mode: str):
        import wandb

        self._wandb, self._project, self._mode = wandb, project, mode
        self._open: dict[Path, Any] = {}
        self._sent: dict[Path, int] = {}  # iteration of the last row that was sent
        self._size: dict[Path, int] = {}  # of metrics.jsonl when it was last read
        self._done: set[Path] = set()
        self._broken = False

    def update(self, plan: RunPlan, finished: Mapping[str, Any] | None, failed: str | None) -> None:
        if self._broken:
            return
        try:
            self._update(plan, finished, failed)
        except Exception as error:  # a view must not cost the runs that it shows
            self._broken = True
            log.warning("W&B failed (%s); the runs go on, and their folders have everything", error)

    def _update(self, plan: RunPlan, finished: Mapping[str, Any] | None, failed: str | None) -> None:
        path = plan.folder.path
        ended = finished is not None or failed is not None
        if path in self._done or (self._mode == "offline" and not ended):
            return
        size = plan.folder.metrics_path.stat().st_size if plan.folder.metrics_path.exists() else 0
        if size == self._size.get(path, 0) and not ended:
            return  # this is called several times a second, for every run of the fleet
        self._size[path] = size
        rows = [row for row in plan.folder.read_metrics() if row["iteration"] > self._sent.get(path, -1)]
        if not ended and not rows:
            return
        view = self._open.get(path) or self._begin(plan)
        for row in rows:
            view.log({key: value for key, value in row.items() if value is not None}, step=row["iteration"])
            self._sent[path] = row["iteration"]
        if ended:
            if finished is not None:
                view.summary.update({f"final/{key}": value for key, value in _scalars(finished).items()})
            view.finish(exit_code=0 if failed is None else 1)
            self._open.pop(path, None)
            self._done.add(path)

    def close(self) -> None:
        """End what is still open (an interrupted fleet); its files stay, and the next start sends the rest."""
        for view in self._open.values():
            with contextlib.suppress(Exception):
                view.finish(exit_code=1)
        self._open.clear()

    def _begin(self, plan: RunPlan) -> Any:
        directory = Path(plan.config["paths"]["runs"]).resolve()
        directory.mkdir(parents=True, exist_ok=True)
        view = self._wandb.init(
            project=self._project,
            group=f"{plan.experiment}/{plan.hash}",
            name=plan.label,
            # The run's own identity: what is resumed continues the same curves.
            id=f"{plan.hash}-{plan.task.name}-{plan.seed}",
            resume="allow" if self._mode == "online" else None,
            config=plan.config,
            tags=[plan.task.name, plan.encoder["name"], plan.algorithm.name],
            dir=str(directory),
            mode=self._mode,  # type: ignore[arg-type]
            reinit="create_new",
            settings=self._wandb.Settings(silent=True, console="off", x_disable_stats=True, x_disable_meta=True),
        )
        self._open[plan.folder.path] = view
        return view


@contextlib.contextmanager
def make_logger(config: Mapping[str, Any]) -> Iterator[Logger]:
    """The logger that a `logger` section describes (`plan` has checked it)."""
    if config["name"] == "files":
        yield FilesOnly()
        return
    mode = wandb_mode(config["mode"])
    view = WandbView(config["project"], mode)
    if mode == "offline" and config["mode"] == "auto":
        log.info(
            "no W&B account here: curves are kept offline (`wandb sync` sends them later; logger=files does without)"
        )
    try:
        yield view
    finally:
        view.close()


def wandb_mode(mode: str) -> str:
    """`auto` is online with an account (WANDB_API_KEY, or a login kept by `wandb login`), offline otherwise."""
    if mode != "auto":
        return mode
    given = os.environ.get("WANDB_MODE")
    if given:
        return given
    if os.environ.get("WANDB_API_KEY"):
        return "online"
    try:
        logins = netrc.netrc().hosts
    except (OSError, netrc.NetrcParseError):
        return "offline"
    return "online" if any("wandb" in host for host in logins) else "offline"


def _scalars(result: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items() if isinstance(value, (int, float, str, bool))}
