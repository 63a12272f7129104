"""From a configuration to the runs it means: everything is checked here, before anything is written or trained.

A configuration is a plain nested dict, as `conf/train.yaml` composes it. A `RunPlan` is one (task, seed) of it.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rlstate.automata import DFA, from_regex, zoo
from rlstate.automata import load as load_automaton
from rlstate.control import EmissionChannel, strata
from rlstate.control.task import Task
from rlstate.learning import kernels
from rlstate.learning.encoders import ENCODERS, import_dotted
from rlstate.learning.objectives import Algorithm, Auxiliary, finite
from rlstate.learning.trainer import Learner
from rlstate.probes.verdict import Thresholds
from rlstate.runlog import DOES_NOT_DECIDE, RunFolder, configuration_hash


class ConfigurationError(ValueError):
    """The configuration asks for something that does not exist or makes no sense. One sentence, nothing written."""


@dataclass(frozen=True)
class RunPlan:
    """One run: what is trained, how it is measured, and where it lies."""

    experiment: str
    hash: str
    task: Task
    seed: int
    folder: RunFolder
    config: dict[str, Any]  # the whole configuration, resolved, with this run's task and seed
    encoder: dict[str, Any]
    algorithm: Algorithm
    auxiliary: Auxiliary
    shaping: str
    iterations: int
    device: str
    thresholds: Thresholds

    @property
    def label(self) -> str:
        return f"{self.task.name}/seed={self.seed}"

    def learner(self) -> Learner:
        return Learner(
            self.task, self.seed, self.encoder, self.algorithm, self.auxiliary, self.shaping, device=self.device
        )

    def capacity_key(self) -> str:
        """What supervised capacity depends on: the automaton as it is observed, and the encoder. Not how it is trained."""
        return configuration_hash(
            {
                "task": _task_content(self.task),
                "encoder": _encoder_content(self.encoder),
                "iterations": self.config["probe"]["capacity_iterations"],
            }
        )


def plan(config: Mapping[str, Any]) -> list[RunPlan]:
    """Every run of a configuration, in the order of tasks, then seeds.

    Raises:
        ConfigurationError: naming the value and the remedy.
    """
    try:
        return _plan(_plain(config))
    except (ValueError, TypeError, KeyError, AttributeError, FileNotFoundError) as error:
        if isinstance(error, ConfigurationError):
            raise
        message = f"the configuration has no {error}" if isinstance(error, KeyError) else str(error)
        raise ConfigurationError(message) from error


_COUNTS = (
    "iterations",
    "checkpoint_every",
    "log_every",
    "evaluation.every",
    "evaluation.episodes",
    "evaluation.curve_episodes",
    "probe.episodes",
    "probe.curve_episodes",
    "probe.capacity_iterations",
)


def _plan(config: dict[str, Any]) -> list[RunPlan]:
    seeds = _seeds(config["seeds"])
    for key in _COUNTS:
        section, _, name = key.rpartition(".")
        _whole(key, (config[section] if section else config)[name])
    if config["threads"] is not None:
        _whole("threads", config["threads"])
    if config["export"] not in (None, "rollouts"):
        raise ConfigurationError(f"export={config['export']!r} is unknown; it can be rollouts, or null for nothing")
    if config["probe"]["episodes"] < 10 or config["probe"]["curve_episodes"] < 10:
        raise ConfigurationError(
            "probe.episodes and probe.curve_episodes must be at least 10: they are split three ways"
        )
    if config["kernels"] not in kernels.MODES:
        raise ConfigurationError(f"kernels={config['kernels']!r} is unknown; it can be {', '.join(kernels.MODES)}")
    if config["kernels"] == "fused" and not kernels.available():
        raise ConfigurationError("kernels=fused, but they cannot be built here; use kernels=auto or kernels=plain")
    for key in ("stack", "processes"):
        if config[key] not in ("auto", True, False):
            raise ConfigurationError(f"{key}={config[key]!r} is unknown; it can be auto, true or false")
    logger = config["logger"]
    if logger["name"] not in ("wandb", "files"):
        raise ConfigurationError(f"logger.name={logger['name']!r} is unknown; it can be wandb or files")
    if logger["name"] == "wandb" and logger["mode"] not in ("auto", "online", "offline", "disabled"):
        raise ConfigurationError(f"logger.mode={logger['mode']!r} is unknown; it can be auto, online or offline")
    if "hidden" in config["encoder"]:
        _whole("encoder.hidden", config["encoder"]["hidden"])
    algorithm = _dataclass(Algorithm, config["algorithm"], "algorithm")
    auxiliary = _dataclass(Auxiliary, config["auxiliary"], "auxiliary")
    shaping = str(config["shaping"]["name"])
    probe = config["probe"]
    for key in ("recovery", "val_n", "saturated"):
        finite(f"probe.{key}", probe[key])
    thresholds = Thresholds(float(probe["recovery"]), float(probe["val_n"]), float(probe["saturated"]))
    if not re.fullmatch(r"[\w.+-]+", str(config["name"])):
        raise ConfigurationError(f"name={config['name']!r} names a folder: use letters, digits, '.', '+', '-' and '_'")

    tasks = _task_configs(config)
    device = resolve_device(config["device"], len(tasks) * len(seeds))
    runs = []
    for task_config in tasks:
        task = build_task(task_config, config["emission"])
        identity = configuration_hash(_decides(config, task))
        # Built once and thrown away: what cannot be built ends the command here, before anything is written.
        Learner(task, 0, config["encoder"], algorithm, auxiliary, shaping)
        for seed in seeds:
            folder = Path(config["paths"]["runs"]) / config["name"] / identity / task.name / f"seed={seed}"
            runs.append(
                RunPlan(
                    experiment=config["name"],
                    hash=identity,
                    task=task,
                    seed=seed,
                    folder=RunFolder(folder),
                    config={**config, "task": task_config, "tasks": None, "seeds": [seed]},
                    encoder=config["encoder"],
                    algorithm=algorithm,
                    auxiliary=auxiliary,
                    shaping=shaping,
                    iterations=config["iterations"],
                    device=device,
                    thresholds=thresholds,
                )
            )
    return runs


def build_task(task: Mapping[str, Any], emission: Mapping[str, Any]) -> Task:
    """The task that a `task` and an `emission` section describe."""
    name, dfa = _automaton(dict(task))
    channel = EmissionChannel.of(dfa, emission["beta"], emission["colouring"])
    return Task(name, dfa, task["horizon"], task["p_control"], channel)


def _automaton(task: dict[str, Any]) -> tuple[str, DFA]:
    """The automaton, and the name of its folder."""
    name = str(task["name"])
    if name == "file":
        path, regex = task.get("path"), task.get("regex")
        alphabet = None if task.get("alphabet") is None else [str(symbol) for symbol in task["alphabet"]]
        if (path is None) == (regex is None):
            raise ConfigurationError(
                "task=file needs one of task.path=<an automaton's file> and task.regex=<a regular expression>"
            )
        if regex is not None:
            digest = hashlib.sha256(str(regex).encode()).hexdigest()[:8]
            return f"regex-{digest}", from_regex(str(regex), alphabet=alphabet)
        path = str(path)
        if not Path(path).is_file():
            raise ConfigurationError(f"task.path={path}: there is no such file (looked in {os.getcwd()})")
        complete = bool(task.get("complete"))
        dfa = load_automaton(path, accept=task.get("accept"), complete=complete, alphabet=alphabet)
        return _folder_name(_file_name(path)), dfa
    if "." in name:
        made = import_dotted(name, "automaton")
        try:
            dfa = made(**(task.get("parameters") or {})) if callable(made) else made
        except Exception as error:  # a user's own code
            raise ConfigurationError(f"task.name={name} raised {type(error).__name__}: {error}") from error
        if not isinstance(dfa, DFA):
            raise ConfigurationError(f"task.name={name} gave a {type(dfa).__name__}; it must be a DFA or return one")
        return _folder_name(name.rpartition(".")[2]), dfa
    if re.fullmatch(r"heldout_\d+", name):
        return name, strata.make(name)
    if name == "mod_k" and "k" in task:
        return f"mod_{task['k']}", zoo.make("mod_k", k=task["k"])
    return name, zoo.make(name)


def _file_name(path: str) -> str:
    """What tells a file from others: its name, or, as mining and training call every file alike, that of its folder."""
    *above, folder, name = Path(os.path.abspath(path)).parts
    if name != "automaton.json":
        return name.split(".")[0]
    return above[-1] if above and re.fullmatch(r"seed=\d+", folder) else folder


def _task_configs(config: dict[str, Any]) -> list[dict[str, Any]]:
    if config.get("tasks") is None:
        return [config["task"]]
    if isinstance(config["tasks"], str) or not config["tasks"]:
        raise ConfigurationError(
            f"tasks={config['tasks']!r} must be a list of zoo names or files, such as tasks=[parity,mod_5]"
        )
    shared = {key: config["task"][key] for key in ("horizon", "p_control")}
    return [{**_named(str(name)), **shared} for name in dict.fromkeys(config["tasks"])]


def _named(name: str) -> dict[str, Any]:
    """The task section of one of `tasks`: a name, or an automaton's file."""
    is_file = Path(name).suffix in (".json", ".dot", ".gv", ".dfa", ".adl")
    return {"name": "file", "path": name} if is_file else {"name": name}


_THRESHOLDS = ("recovery", "val_n", "saturated")  # of `probe`: they name what came out


def _decides(config: dict[str, Any], task: Task) -> dict[str, Any]:
    rest = {key: value for key, value in config.items() if key not in DOES_NOT_DECIDE and key != "task"}
    rest["probe"] = {key: value for key, value in config["probe"].items() if key not in _THRESHOLDS}
    return {**rest, "encoder": _encoder_content(config["encoder"]), "task": _task_content(task)}


def _encoder_content(encoder: dict[str, Any]) -> dict[str, Any]:
    """An encoder by its content: of a user's own, also the source of its module, so that an edited one is another one."""
    name = str(encoder["name"])
    if name in ENCODERS:
        return encoder
    module = inspect.getmodule(import_dotted(name, "encoder"))
    source = None if module is None else inspect.getsourcefile(module)
    return {**encoder, "source": hashlib.sha256(Path(source).read_bytes()).hexdigest() if source else None}


def _task_content(task: Task) -> dict[str, Any]:
    """A task by its content: the automaton's tables, not its name or path."""
    digest = hashlib.sha256()
    for table in (task.dfa.transitions.astype(np.int64), task.dfa.accepting.astype(np.int64), task.channel.colouring):
        digest.update(repr(table.shape).encode() + np.ascontiguousarray(table).tobytes())
    return {
        "automaton": digest.hexdigest(),
        "start": int(task.dfa.start),
        "horizon": task.horizon,
        "p_control": task.p_control,
        "beta": task.channel.beta,
    }


_FILLS_A_GPU = 64  # runs: by estimate, what 16 cores do in the time that a GPU takes for an iteration of however many


def resolve_device(device: str, runs: int = 1) -> str:
    """auto | cpu | cuda → the device that `runs` runs are trained on; auto is the GPU, where there is one, for large fleets.

    Raises:
        ConfigurationError: an unknown name, or cuda where there is none.
    """
    if device == "auto":
        return "cuda" if runs >= _FILLS_A_GPU and torch.cuda.is_available() else "cpu"
    if device not in ("cpu", "cuda"):
        raise ConfigurationError(f"device={device!r} is unknown; it can be auto, cpu or cuda")
    if device == "cuda" and not torch.cuda.is_available():
        raise ConfigurationError("device=cuda, but PyTorch sees no GPU here; use device=cpu or device=auto")
    return device


def _seeds(seeds: Any) -> list[int]:
    if isinstance(seeds, bool) or (isinstance(seeds, int) and not 1 <= seeds <= 100_000):
        raise ConfigurationError(f"seeds={seeds!r}: give how many (1 to 100000), or a list such as seeds=[0,3,7]")
    listed = list(range(seeds)) if isinstance(seeds, int) else list(dict.fromkeys(seeds))
    if not listed or any(isinstance(seed, bool) or not isinstance(seed, int) or seed < 0 for seed in listed):
        raise ConfigurationError(f"seeds={seeds!r}: give how many (at least 1), or a list of whole numbers from 0 on")
    return listed


def _whole(key: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigurationError(f"{key}={value!r} must be a whole number of at least 1")


def _dataclass(cls: type[Any], section: Mapping[str, Any], key: str) -> Any:
    known = {field.name for field in fields(cls)}
    for name in section:
        if name not in known:
            raise ConfigurationError(f"{key}.{name} is unknown; {key} has {', '.join(sorted(known))}")
    return cls(**section)


def _folder_name(name: str) -> str:
    return re.sub(r"[^\w.+-]", "_", name) or "automaton"


def _plain(config: Mapping[str, Any]) -> dict[str, Any]:
    """Plain dicts and lists, interpolations resolved: what YAML and JSON hold."""
    if type(config).__module__.startswith("omegaconf"):
        from omegaconf import OmegaConf

        config = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)  # type: ignore[assignment]

    def convert(value: Any) -> Any:
        return value.tolist() if hasattr(value, "tolist") else str(value)  # numpy's numbers and arrays; paths

    return json.loads(json.dumps({key: value for key, value in config.items() if key != "hydra"}, default=convert))


def describe(runs: Sequence[RunPlan]) -> str:
    """A line a run, for `dry_run=true`."""
    return "\n".join(
        f"{run.folder.path}  {run.task.dfa.n_states} states × {run.task.dfa.n_symbols} symbols, T={run.task.horizon}, "
        f"{run.encoder['name']} + {run.algorithm.name}, {run.iterations} iterations"
        for run in runs
    )
