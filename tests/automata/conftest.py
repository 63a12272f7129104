"""Files that nobody on this project wrote: they lie beside the repository and are never part of it."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data() -> Path:
    folder = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the models and samples of ../shared/data are not on this machine")
    return folder
