"""Compile `kernels.cpp` once for this machine and load it.

The library is cached under a key of its source, the compiler, the flags and the processor. It is compiled to a temporary
name and moved into place, so processes that start at once do not disturb each other.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

log = logging.getLogger("rlstate")

SOURCE = Path(__file__).with_name("kernels.cpp")
# No -ffast-math: NaN and infinity keep their meaning, and sums their order.
FLAGS = (
    "-std=c++17",
    "-O3",
    "-march=native",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fPIC",
    "-shared",
)


@lru_cache
def load_library() -> ctypes.CDLL | None:
    """The compiled kernels; None, after one warning that names the remedy, where they cannot be had."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++") or shutil.which("c++")
    if compiler is None:
        log.warning(
            "no C++ compiler found: training takes the plain PyTorch path, about half as fast; install g++ or set CXX"
        )
        return None
    try:
        return ctypes.CDLL(str(_built(compiler)))
    except (OSError, subprocess.SubprocessError) as error:
        reason = getattr(error, "stderr", None) or str(error)
        log.warning(
            "the kernels could not be built with %s: training takes the plain PyTorch path, about half as fast; set CXX to "
            "another compiler, or RLSTATE_KERNELS=plain to say no more of it. It said: %s",
            compiler,
            reason.strip()[:500],
        )
        return None


def cache_folder() -> Path:
    """`$RLSTATE_CACHE`, or `rlstate` in the user's cache folder."""
    given = os.environ.get("RLSTATE_CACHE")
    return Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rlstate"


def _built(compiler: str) -> Path:
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout
    identity = "\0".join([SOURCE.read_text(), compiler, version, *FLAGS, _processor()])
    target = cache_folder() / f"kernels-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.so"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            fresh = Path(folder) / "kernels.so"
            command = [compiler, *FLAGS, "-o", str(fresh), str(SOURCE)]
            subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
            os.replace(fresh, target)
    return target


def _processor() -> str:
    """What `-march=native` may depend on: a cache shared by unlike machines must not mix them up."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}))
