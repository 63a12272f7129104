"""A run's folder survives kills, damage and company."""

from __future__ import annotations

import json
import logging

import numpy as np
import pytest
import torch

from rlstate.runlog import _RESULT_KEYS, RunBusy, RunFolder, configuration_hash, find_runs, jsonable, write_atomically


@pytest.fixture
def folder(tmp_path) -> RunFolder:
    return RunFolder(tmp_path / "run")


def test_the_hash_is_of_the_content_and_not_of_the_order():
    assert configuration_hash({"a": 1, "b": [1, 2]}) == configuration_hash({"b": [1, 2], "a": 1})
    assert configuration_hash({"a": 1}) != configuration_hash({"a": 2})
    assert configuration_hash({"a": [1, {"b": 0}]}) == configuration_hash({"a": [1.0, {"b": 0.0}]})
    assert configuration_hash({"a": True}) != configuration_hash({"a": 1})


def test_metrics_are_cut_back_and_a_torn_last_line_is_no_row(folder):
    folder.path.mkdir()
    for iteration in (0, 50, 100):
        folder.append_metrics({"iteration": iteration, "x": float("nan")})
    with open(folder.metrics_path, "ab") as handle:
        handle.write(b"5\nnot json\n")
        handle.write(b'{"iteration": 150, "x"')
    assert [row["iteration"] for row in folder.read_metrics()] == [0, 50, 100]
    folder.cut_metrics(50)
    assert folder.metrics_path.read_text() == '{"iteration": 0, "x": null}\n{"iteration": 50, "x": null}\n'


def test_a_damaged_checkpoint_is_named_kept_and_the_last_good_one_used(folder, caplog):
    folder.write_checkpoint({"learner": {"iteration": 1}, "w": torch.ones(3)})
    folder.write_checkpoint({"learner": {"iteration": 2}, "w": torch.ones(3)})
    whole = folder.checkpoint_path.read_bytes()
    folder.checkpoint_path.write_bytes(whole[: len(whole) // 2])
    with caplog.at_level(logging.WARNING, "rlstate"):
        assert folder.restore(lambda state: state["learner"]["iteration"]) == 1
    assert "checkpoint.pt is damaged" in caplog.text
    assert (folder.path / "checkpoint.pt.damaged").read_bytes() == whole[: len(whole) // 2]


@pytest.mark.parametrize("content", [b"", b"garbage", b"PK\x03\x04 but not a zip"])
def test_every_kind_of_damage_counts(folder, content):
    folder.path.mkdir()
    folder.checkpoint_path.write_bytes(content)
    assert folder.restore(lambda state: state) is None
    assert (folder.path / "checkpoint.pt.damaged").exists()


def test_a_checkpoint_that_reads_but_cannot_be_used_is_damaged_too(folder):
    folder.write_checkpoint({"learner": 1})
    folder.write_checkpoint({"other": 2})
    assert folder.restore(lambda state: state["learner"]) == 1
    assert (folder.path / "checkpoint.pt.damaged").exists()


def test_a_damaged_result_is_named_and_kept(folder):
    result = dict.fromkeys(_RESULT_KEYS, 1)
    folder.write_result(result)
    assert folder.read_result() == result
    for content in ("{", "[]", '{"verdict": "x"}'):
        folder.result_path.write_text(content)
        assert folder.read_result() is None
        assert not folder.result_path.exists()
    assert len(list(folder.path.glob("result.json.damaged*"))) == 3


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def no_space(*_):
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", no_space)
    with pytest.raises(OSError, match="no space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_two_processes_cannot_have_one_folder(folder):
    with folder.locked(), pytest.raises(RunBusy, match="another process"), RunFolder(folder.path).locked():
        pass
    with folder.locked():
        pass


def test_what_is_not_json_becomes_json():
    value = {"a": np.float32(0.5), "b": np.arange(2), "c": float("inf"), "d": [np.nan, True, None], "e": (1, "x")}
    assert json.loads(json.dumps(jsonable(value), allow_nan=False)) == {
        "a": 0.5, "b": [0, 1], "c": None, "d": [None, True, None], "e": [1, "x"],
    }  # fmt: skip


def test_runs_are_found_by_their_configuration(tmp_path):
    for name in ("b/seed=1", "a/seed=0"):
        RunFolder(tmp_path / name).write_config({"name": name})
    (tmp_path / "capacity").mkdir()
    assert [run.path.relative_to(tmp_path).as_posix() for run in find_runs(tmp_path)] == ["a/seed=0", "b/seed=1"]
    with pytest.raises(FileNotFoundError, match="not a run's folder"):
        RunFolder(tmp_path / "capacity").read_config()
