"""The folder that a mined automaton is written to: all of its files or none, and never over others unasked."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

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


def escaped(text: str) -> str:
    """A name on one line of Markdown, in a table or not: bars and control characters escaped."""
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return shown.replace("|", "\\|")
