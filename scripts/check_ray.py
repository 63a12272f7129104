"""Does a sweep run on Ray? Starts a local cluster, trains a small sweep on it, and compares with the same sweep without.

pip install '.[ray]' && python scripts/check_ray.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

SWEEP = [
    "-m", "+experiment=quickstart", "task=mod_3,parity", "seeds=1", "iterations=20", "probe=none", "logger=files", "threads=1",
    "evaluation.episodes=256",
]  # fmt: skip


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = {}
        for name, extra in (("basic", []), ("ray", ["hydra/launcher=ray", "+hydra.launcher.ray.init.num_cpus=2"])):
            command = [sys.executable, "-m", "rlstate.train", *SWEEP, *extra, f"paths.runs={folder}/{name}"]
            print("$", " ".join(["python", *command[1:]]), flush=True)
            done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if done.returncode:
                sys.exit(done.stdout + f"\nexit status {done.returncode}")
            results = [json.loads(path.read_text()) for path in sorted(Path(folder, name).rglob("result.json"))]
            found[name] = {result["task"]: (result["val_n"], result["probe_gap"]) for result in results}
            print(found[name], flush=True)
    if len(found["ray"]) != 2 or found["ray"] != found["basic"]:
        sys.exit("the sweep on Ray did not give the same results")
    print("the sweep on Ray gave the same results, to the bit")


if __name__ == "__main__":
    main()
