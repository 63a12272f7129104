"""What the mining commands say, and the folder that they write to: all of its files or none, never over others unasked."""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from rlstate.automata import DFA

FILES = ("automaton.json", "automaton.svg", "report.json", "report.md")


def check_output(folder: Path, force: bool) -> None:
    """Raises ValueError where `folder` cannot be made or written to, or, without `force`, already holds a report."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--output {folder} is a file, but must be a folder.")
    there = [name for name in FILES if os.path.lexists(folder / name)]
    if there and not force:
        raise ValueError(f"{folder} already holds {', '.join(there)}: name another folder, or replace them by --force.")
    for name in there:
        if (folder / name).is_dir():
            raise ValueError(f"{folder / name} is a folder, in the place of a file: name another folder for --output.")
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    try:
        tempfile.TemporaryDirectory(dir=nearest, prefix=".mining-").cleanup()
    except OSError as error:
        raise ValueError(f"--output {folder} cannot be made in {nearest}: {error.strerror}.") from error


def write_files(folder: Path, make: Mapping[str, Callable[[Path], object]], force: bool) -> None:
    """Write all of FILES, each by its function of a path, or none.

    They are made in a temporary folder, which becomes `folder` itself if there is none yet. Where one is, they are moved
    into it, and if that fails the files that they replaced are put back.
    """
    inside = folder.is_dir()
    parent = folder if inside else folder.absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix=".mining-") as scratch:
        made, old = Path(scratch, "made"), Path(scratch, "old")
        made.mkdir()  # unlike the scratch folder, with the usual permissions
        old.mkdir()
        for name in FILES:
            make[name](made / name)
        check_output(folder, force)  # somebody may have been faster
        if not folder.is_dir():
            os.rename(made, folder)
            return
        moved: list[str] = []
        try:
            for name in FILES:
                with suppress(FileNotFoundError):
                    os.replace(folder / name, old / name)
                moved.append(name)
                os.replace(made / name, folder / name)
        except BaseException:
            for name in moved:
                (folder / name).unlink(missing_ok=True)
                with suppress(FileNotFoundError):
                    os.replace(old / name, folder / name)
            raise


def next_steps(folder: Path, dfa: DFA, horizon: int | None = None, p_control: float = 0.5) -> str:
    """The commands, for a shell, that look at the automaton in `folder` and that train on it as that task, if it is one."""
    from rlstate.control import checks
    from rlstate.control.task import PAPER_HORIZON

    horizon = PAPER_HORIZON if horizon is None else horizon
    path = str(folder / FILES[0])
    look = ["python", "-m", "rlstate.inspect", path]
    look += ["--horizon", str(horizon)] * (horizon != PAPER_HORIZON)
    look += ["--p-control", f"{p_control:g}"] * (p_control != 0.5)
    train = ["python", "-m", "rlstate.train", "+experiment=quickstart", "task=file", f"task.path={_for_hydra(path)}"]
    train += [f"task.horizon={horizon}"] + [f"task.p_control={p_control:g}"] * (p_control != 0.5)
    said = ["next:", f"  {shlex.join(look)}"]
    if dfa.n_states > 1:
        try:
            checks.accepted_horizon(dfa, horizon)
            said.append(f"  {shlex.join(train)}")
        except ValueError as error:
            said.append(f"not a task: {error}")
    return "\n".join(said)


def _for_hydra(path: str) -> str:
    """A path as a value of Hydra's grammar: in quotes where it has more than plain characters."""
    if re.fullmatch(r"[\w./+-]+", path, re.ASCII):
        return path
    return "'" + re.sub(r"(\\*)'", r"\1\1\'", path) + "'"


def as_options(text: str) -> str:
    """A message that names Python's arguments in the words of the command line.

    `case=…` becomes `--case …`, and of the argument that a sentence begins with `top is 0, but` becomes `--top is 0, but` and
    `horizon=0 is` `--horizon 0 is`.
    """

    def option(name: str) -> str:
        return f"--{name.replace('_', '-')}"

    text = re.sub(r"\b([a-z_]+)=…", lambda found: f"{option(found[1])} …", text)
    text = re.sub(r"^([a-z_]+)(?= is \S+, but )", lambda found: option(found[1]), text)
    text = re.sub(r"^([a-z_]+)=(?=\S+ is )", lambda found: f"{option(found[1])} ", text)
    return text.replace("take the whole case", "leave out --before-outcome")


def count(number: int, what: str) -> str:
    """`1 state`, `2 states`."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def escaped(text: str) -> str:
    """A name on one line of Markdown, in a table or not: bars and control characters escaped."""
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return shown.replace("|", "\\|")
