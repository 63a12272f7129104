"""How a command ends: its exit code, one line for an error, and no traceback for what is nobody's bug."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""


def one_line(text: str) -> str:
    return " ".join(text.split())


def ended(command: Callable[[], int], say: Callable[[str], str] = one_line) -> int:
    """Run a command; its exit code, or 2 after an error of one line on standard error, or 130 after Ctrl-C.

    What standard output cannot encode is replaced. Whoever reads it may stop: that is no error. A full disk is.

    say: makes one line of an error's text.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    try:
        status = command()
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        status = 0
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        status = INTERRUPTED
    except (ValueError, OSError, ImportError, OverflowError, RecursionError, MemoryError) as error:
        print(f"error: {say(str(error)) or type(error).__name__}", file=sys.stderr)
        status = 2
    try:
        sys.stdout.flush()
    except OSError:  # what cannot be written would be tried again at exit, with a traceback
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status


def clean_up_when_terminated() -> None:
    """Make SIGTERM unwind the program as Ctrl-C does, so that temporary folders are removed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
