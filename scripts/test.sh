#!/usr/bin/env bash
# Lint, types, tests. Uses .venv where there is one. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x .venv/bin/python ] && PATH="$PWD/.venv/bin:$PATH"
ruff check .
ruff format --check .
mypy
python -m pytest -n auto "$@"
