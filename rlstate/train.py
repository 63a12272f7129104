"""`python -m rlstate.train`: compose a configuration, run it, show what came out.

python -m rlstate.train +experiment=quickstart
python -m rlstate.train +experiment=quickstart task=mod_5 algorithm=a2c iterations=500 seeds=2 logger=files
python -m rlstate.train -m +experiment=quickstart task.k=3,5,7 emission.beta=0,0.1,1
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

# torch is imported where training begins: `--help`, `--cfg` and mistakes answer at once.
import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from rlstate.automata import zoo

_composing = threading.Lock()
_MISTAKE = "mistake: "  # marks a job that ended before anything was written
_NOTHING_TO_TRAIN = (
    "experiment=credit has no runs: the paper's Appendix B is computed exactly. `python -m rlstate.report runs/paper` shows its "
    "claims, tables and figure, `python -m rlstate.inspect parity` Δ and what bounds it for one automaton."
)
_REPORTS = "RLSTATE_REPORTS"  # a file that every job of a command adds to: ["failed", run, reason] or ["estimate", {…}]


def configuration_folder() -> Path:
    """`conf/`: inside the package in an installed wheel, beside it in a checkout."""
    installed = Path(__file__).resolve().parent / "conf"
    return installed if installed.is_dir() else Path(__file__).resolve().parent.parent / "conf"


def compose(overrides: Sequence[str] = ()) -> dict[str, Any]:
    """The configuration that a command line would have, as a plain dict: `compose(["+experiment=quickstart", "task=mod_5"])`."""
    from hydra.core.global_hydra import GlobalHydra

    with _composing:  # Hydra keeps what it composes with in a global
        register_tasks(overrides)
        previous = GlobalHydra.instance().hydra
        GlobalHydra.instance().clear()
        try:
            with hydra.initialize_config_dir(str(configuration_folder()), version_base="1.3"):
                config = hydra.compose("train", list(overrides))
            return OmegaConf.to_container(config, resolve=True)  # type: ignore[return-value]
        finally:
            GlobalHydra.instance().hydra = previous


def register_tasks(overrides: Iterable[str] = ()) -> None:
    """Make every task of the zoo a choice of the `task` group, also those that only the command line names (`task=mod_13`).

    Raises:
        ValueError: `task=` names something that is neither in the zoo nor a file of `conf/task`.
    """
    files = {path.stem for path in (configuration_folder() / "task").glob("*.yaml")}
    named = [match[1] for each in overrides if (match := re.fullmatch(r"\+{0,2}task=([^\[{(]*)", each))]
    asked = [name.strip().strip("'\"") for value in named for name in value.split(",")]
    for name in dict.fromkeys([*zoo.names(), "mod_k", *asked]):
        if name in files or not name:
            continue
        if name == "mod_k":
            node: dict[str, Any] = {"name": "mod_k", "k": 5}
        else:
            if not re.fullmatch(r"heldout_\d+", name):  # those are rlstate.control.strata's
                zoo.describe(name)  # an unknown name ends here, with the names that are close
            counter = re.fullmatch(r"mod_(-?\d+)", name)
            node = {"name": "mod_k", "k": int(counter[1])} if counter else {"name": name}
        ConfigStore.instance().store(
            name=name, group="task", node={"defaults": ["base", "_self_"], **node}, provider="rlstate.automata.zoo"
        )


def run_job(config: DictConfig) -> None:
    """One job of the command: a fleet. What failed is reported by `main`, after every job has had its turn."""
    from rlstate import estimate, experiment, summary

    plain: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
    failures: Mapping[str, str] = {}
    try:
        if plain["dry_run"]:
            expected = estimate.estimate(plain)
            print(expected)
            _report([("estimate", asdict(expected))])
            return
        results = experiment.run(plain)
    except (experiment.ConfigurationError, experiment.RunBusy) as error:
        failures, results = {_MISTAKE + " ".join(HydraConfig.get().overrides.task): str(error)}, []
    except experiment.RunsFailed as error:
        failures, results = error.failures, error.results
    if results:
        print(summary.table(results))
        print(summary.paths(results))
    # A job on another machine has only its own exit status to tell.
    if failures and not _report([("failed", *failure) for failure in failures.items()]):
        raise RuntimeError("; ".join(f"{name}: {reason}" for name, reason in failures.items()))


def main() -> None:
    """The command line. Exit status: 0, 1 where a run failed, 2 for a mistake in the command, 130 when interrupted."""
    try:
        register_tasks(sys.argv[1:])
    except ValueError as error:
        sys.exit(_complain(str(error), 2))
    if any(re.fullmatch(r"\+{0,2}experiment=credit", each) for each in sys.argv[1:]):
        sys.exit(_complain(_NOTHING_TO_TRAIN, 2))
    # A cluster's SIGTERM is a Ctrl-C: checkpoints are written before the process ends.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="rlstate-") as folder:
        reports = Path(folder) / "reports.jsonl"
        os.environ[_REPORTS] = str(reports)
        try:
            hydra.main(version_base="1.3", config_path=str(configuration_folder()), config_name="train")(run_job)()
        except KeyboardInterrupt:
            sys.exit(_complain("interrupted", 130))
        reported = [json.loads(line) for line in reports.read_text().splitlines()] if reports.exists() else []
    estimates = [report[1] for report in reported if report[0] == "estimate"]
    if len(estimates) > 1:
        from rlstate.estimate import Estimate, total

        print(f"\n{total([Estimate(**each) for each in estimates])}")
    listed = [report[1:] for report in reported if report[0] == "failed"]
    mistakes = [(name.removeprefix(_MISTAKE), reason) for name, reason in listed if name.startswith(_MISTAKE)]
    if len(listed) == 1 and mistakes:
        sys.exit(_complain(mistakes[0][1], 2))
    if listed:
        print(f"\n{len(listed)} failed:", file=sys.stderr)
        for name, reason in listed:
            print(f"  {name.removeprefix(_MISTAKE)}: {reason}", file=sys.stderr)
        sys.exit(1)


def _report(what: Iterable[tuple[Any, ...]]) -> bool:
    """Leave something for `main`; whether that can be. Jobs may be other processes, and must not stop each other."""
    path = os.environ.get(_REPORTS)
    if path is None or not Path(path).parent.is_dir():
        return False
    with open(path, "ab", buffering=0) as handle:  # one write, so that lines of jobs side by side do not mix
        handle.write("".join(json.dumps(each) + "\n" for each in what).encode())
    return True


def _complain(message: str, status: int) -> int:
    print(f"error: {message}" if status == 2 else message, file=sys.stderr)
    return status


if __name__ == "__main__":
    main()
