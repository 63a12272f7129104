from __future__ import annotations

import signal
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parent.parent

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts the tests in the background has them ignore Ctrl-C, and so would every process they interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def one_thread():
    """As in a fleet: a run has one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Models, samples and logs that nobody here wrote; see the README for where to get them."""
    path = ROOT.parent / "shared" / "data"
    if not path.is_dir():
        pytest.skip(f"the external models are not here ({path})")
    return path
