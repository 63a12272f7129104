"""`python -m rlstate.mine code div7`, `… log events.xes.gz`, `… list`: automata from code and from event logs."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from rlstate.console import clean_up_when_terminated, ended, one_line
from rlstate.mine_output import as_options

_KINDS = {
    "code": ("mine_code", "the words that some code accepts: a named predicate or any Python function"),
    "log": ("mine_log", "the cases of an event log (XES or CSV) with some outcome"),
    "list": (None, "the named predicates"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Mine what the arguments ask for; the exit code: 0, 2 after an error of one line, or 130 after Ctrl-C."""
    return ended(lambda: _main(argv), lambda text: as_options(one_line(text)))


def _main(argv: Sequence[str] | None) -> int:
    argv = sys.argv[1:] if argv is None else list(argv)
    parser = argparse.ArgumentParser(prog="python -m rlstate.mine", description="Mine an automaton.")
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="{code,log,list}")
    for kind, (module, what) in _KINDS.items():
        options = kinds.add_parser(kind, help=what, description=f"Mine {what}." if module else f"List {what}.")
        # Only what was asked for is imported: the other may need what is not installed, and help should be quick.
        if module and kind in argv[:1]:
            importlib.import_module(f"rlstate.{module}").add_arguments(options)
    arguments = parser.parse_args(argv)
    module = _KINDS[arguments.kind][0]
    if module is None:
        return int(importlib.import_module("rlstate.mine_code").show_predicates())
    return int(importlib.import_module(f"rlstate.{module}").main(arguments))


if __name__ == "__main__":
    clean_up_when_terminated()
    sys.exit(main())
