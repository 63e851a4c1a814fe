from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from torch import nn

from quadmatch.models import checkpoints
from quadmatch.models.checkpoints import (
    Checkpoint,
    list_checkpoints,
    load_checkpoint,
    load_into,
    load_parameters,
    read_state,
    save_checkpoint,
)


def make(step: int, best: int | None = None, average: bool = True) -> Checkpoint:
    tensor = torch.full((2, 3), float(step))
    # Laid out as channels-last convolutions are: not contiguous.
    model = {"a": tensor.t(), "b": torch.tensor(step)}
    state = {"best": None if best is None else {"step": best, "accuracy": 1.0}}
    state |= {"stale": 0, "seconds": 1.5, "finished": False}
    return Checkpoint(step, model, {"a": -tensor.t()} if average else {}, {"a/step": torch.tensor(1.0)}, state)


def test_what_is_saved_is_loaded(tmp_path) -> None:
    folder = save_checkpoint(tmp_path, make(3, best=3))
    assert sorted(path.name for path in folder.iterdir()) == [
        "average.safetensors",
        "model.safetensors",
        "optimiser.safetensors",
        "state.json",
    ]
    assert json.loads((folder / "state.json").read_text())["step"] == 3
    loaded = load_checkpoint(tmp_path)
    assert loaded.step == 3
    for part in ("model", "average", "optimiser"):
        expected, found = getattr(make(3), part), getattr(loaded, part)
        assert expected.keys() == found.keys()
        assert all(torch.equal(found[name], value) for name, value in expected.items())


def test_last_and_best_are_kept(tmp_path) -> None:
    save_checkpoint(tmp_path, make(1, best=1), keep=[1])
    save_checkpoint(tmp_path, make(2, best=1), keep=[1])
    save_checkpoint(tmp_path, make(3, best=1), keep=[1])
    assert list_checkpoints(tmp_path) == [1, 3]
    assert load_parameters(tmp_path, "best")["a"][0, 0] == -1
    assert load_parameters(tmp_path, "last")["a"][0, 0] == -3
    assert load_parameters(tmp_path, "last")["b"] == 3
    save_checkpoint(tmp_path, make(4, best=None, average=False))
    assert load_parameters(tmp_path, "best")["a"][0, 0] == 4
    with pytest.raises(ValueError, match="'best' or 'last', got 'first'"):
        load_parameters(tmp_path, "first")


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_one_before(tmp_path, monkeypatch, failing: str) -> None:
    save_checkpoint(tmp_path, make(1))

    def fail(*arguments: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(os, failing, fail)
        with pytest.raises(OSError, match="disk full"):
            save_checkpoint(tmp_path, make(2))
    assert list_checkpoints(tmp_path) == [1]
    assert load_checkpoint(tmp_path).step == 1
    save_checkpoint(tmp_path, make(3))
    assert [path.name for path in (tmp_path / checkpoints.FOLDER).iterdir()] == ["00000003"]


def test_missing_foreign_and_damaged_checkpoints_are_named(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match="holds no checkpoint"):
        read_state(tmp_path)
    folder = save_checkpoint(tmp_path, make(1))
    with pytest.raises(FileNotFoundError, match=r"no checkpoint of step 7; it holds \[1\]"):
        load_checkpoint(tmp_path, 7)
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[:-3])
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged"):
        load_checkpoint(tmp_path)


def flip_byte(path: Path, place: int = -1) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("part", ["model", "average", "optimiser"])
def test_a_flipped_byte_is_noticed_and_the_way_back_is_shown(tmp_path, part: str) -> None:
    save_checkpoint(tmp_path, make(1, best=1))
    folder = save_checkpoint(tmp_path, make(2, best=1), keep=[1])
    flip_byte(folder / f"{part}.safetensors")
    with pytest.raises(ValueError, match=rf"00000002/{part}\.safetensors is damaged.*remove .*00000002.*from step 1"):
        load_checkpoint(tmp_path)
    shutil.rmtree(folder)
    assert load_checkpoint(tmp_path).step == 1
    flip_byte(tmp_path / checkpoints.FOLDER / "00000001" / "average.safetensors")
    with pytest.raises(ValueError, match="put back a copy of it, or train anew"):
        load_parameters(tmp_path)


def test_checkpoints_of_before_are_read_with_a_warning(tmp_path) -> None:
    folder = save_checkpoint(tmp_path, make(1))
    state = json.loads((folder / "state.json").read_text())
    del state["sha256"]
    (folder / "state.json").write_text(json.dumps(state))
    with pytest.warns(UserWarning, match="00000001 is of an earlier version, without checksums"):
        assert load_checkpoint(tmp_path).step == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "must hold a JSON object.* a list"),
        ('{"format": 99}', "format 99"),
        ('{"format": 1}', "the key 'step' is missing"),
        ({"step": "1"}, "the key 'step' cannot hold text"),
        ({"step": 7}, "'step' is 7, but its folder's name says 1"),
        ({"best": [3]}, "the key 'best' cannot hold a list"),
        ({"best": {"accuracy": 1.0}}, "best: the key 'step' is missing"),
        ({"finished": None}, "the key 'finished' cannot hold None"),
        ({"sha256": 3}, "the key 'sha256' cannot hold 3"),
        ({"sha256": {"model": "a"}}, "sha256: the key 'average' is missing"),
    ],
)
def test_a_broken_state_is_named_with_its_key(tmp_path, text: str | dict, expected: str) -> None:
    path = save_checkpoint(tmp_path, make(1)) / "state.json"
    whole = json.loads(path.read_text())
    path.write_text(text if isinstance(text, str) else json.dumps(whole | text))
    with pytest.raises(ValueError, match=rf"state\.json.*{expected}"):
        load_checkpoint(tmp_path)


def test_keys_that_do_not_fit_are_named_and_nothing_is_loaded() -> None:
    model = nn.Linear(3, 2)
    before = model.weight.clone()
    with pytest.raises(ValueError, match=r"run x does not fit .*: bias is missing; scale is unknown; weight has"):
        load_into(model, {"weight": torch.zeros(2, 2), "scale": torch.zeros(1)}, "run x")
    assert torch.equal(model.weight, before)
    load_into(model, {"weight": torch.ones(2, 3), "bias": torch.ones(2)}, "run x")
    assert torch.equal(model.weight, torch.ones(2, 3))
