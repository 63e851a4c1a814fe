from __future__ import annotations

import hashlib
import json
import shutil

import numpy as np
import pytest
import torch
import typer
from safetensors.torch import load_file
from tiny_experiment import tiny_experiment, write_tiny
from typer.testing import CliRunner

import quadmatch.models.load as shipped
from quadmatch.commands.export import export as export_command
from quadmatch.evaluation.report import Conditions
from quadmatch.evaluation.trial import choose_data, try_model
from quadmatch.models.export import export_model
from quadmatch.models.load import find_experiment, list_models, load, read_aliases, read_card
from quadmatch.training.fit import fit

PICTURE = np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8)
POINTS = np.random.default_rng(1).uniform(5, 35, (6, 2))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return write_tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def run(tiny):
    """A run that trains the last convolutions at the keypoints too."""
    changes = ["features.level=local", "training.steps=3", "training.backbone_learning_rate=1e-2"]
    changes.append("head.options.width=8")
    fit(tiny_experiment(tiny, changes), tiny / "run", say=lambda line: None, board=False)
    return tiny / "run"


@pytest.fixture(autouse=True)
def weights(tiny, monkeypatch):
    """The only weights at hand are the tiny data set's."""
    state = load_file(tiny / "vgg16.safetensors")
    monkeypatch.setenv("QUADMATCH_PRECISION", "float32,channels_last,1")
    monkeypatch.setattr("quadmatch.features.levels.resolve_vgg16", lambda path: load_file(path) if path else state)


@pytest.fixture
def models(tmp_path, monkeypatch):
    """An empty folder of shipped models."""
    monkeypatch.setattr(shipped, "MODELS", tmp_path / "models")
    return tmp_path / "models"


def match(matcher):
    return matcher.match(PICTURE, POINTS, PICTURE[:, ::-1], POINTS).assignment


def test_an_exported_model_is_the_run_in_half_the_bytes(run, models) -> None:
    card = read_card(export_model(run, "small", models))
    whole, again = load(run), load("small")
    assert not again.training
    for number, name in (("float16", "small"), ("float32", "exact")):
        export_model(run, name, models, number=number)
        tolerance = 1e-2 if number == "float16" else 0
        assert np.allclose(match(load(name)), match(whole), atol=tolerance, rtol=0)
    stored = load_file(models / "small.safetensors")
    assert {one.dtype for one in stored.values()} == {torch.float16}
    # Of VGG16, only the three convolutions that were trained.
    kept = {key.split(".")[2] for key in stored if key.startswith("features.")}
    assert kept == {"17", "19", "24"}
    assert card["bytes"] == (models / "small.safetensors").stat().st_size
    assert card["parameters"] == sum(one.numel() for one in stored.values())
    assert (card["protocol"], card["split"], card["width"]) == ("intersection", "train", 8)
    assert {"command", "commit", "date", "hardware", "figures", "experiment", "sha256"} <= card.keys()
    assert card["trained"]["step"] == 3
    assert str(run.parent) not in (models / "small.json").read_text()
    assert again.construction == whole.construction


def test_a_model_of_late_convolutions_stores_them_and_loads(tiny, models, tmp_path) -> None:
    changes = [
        "features.level=late",
        "training.steps=3",
        "training.backbone_learning_rate=1e-2",
        "head.options.width=8",
    ]
    fit(tiny_experiment(tiny, changes), tmp_path / "run", say=lambda line: None, board=False)
    export_model(tmp_path / "run", "late", models)
    kept = {key for key in load_file(models / "late.safetensors") if key.startswith("features.")}
    assert kept == {"features.features.24.weight", "features.features.24.bias"}
    assert load("late").features.level == "late"
    assert np.allclose(match(load("late")), match(load(tmp_path / "run")), atol=1e-2, rtol=0)


@pytest.mark.parametrize("changes", [(), ("constraint=none",)])
def test_frozen_features_are_not_stored_at_all(tiny, models, tmp_path, changes) -> None:
    experiment = tiny_experiment(tiny, ["training.steps=1", *changes])
    fit(experiment, tmp_path / "run", say=lambda line: None, board=False)
    export_model(tmp_path / "run", "frozen", models)
    assert all(key.startswith("head.") for key in load_file(models / "frozen.safetensors"))
    assert np.allclose(match(load("frozen")), match(load(tmp_path / "run")), atol=1e-2)


def test_models_load_by_name_alias_file_and_folder(run, models) -> None:
    export_model(run, "small", models)
    (models / "aliases.json").write_text(json.dumps({"best": "small", "gone": "none"}))
    assert list_models() == ["best", "default", "small", "vgg16"]
    expected = match(load("small"))
    for place in ("best", models / "small.safetensors", models / "small.json"):
        assert np.array_equal(match(load(place)), expected)
        assert find_experiment(place)["data"]["name"] == "willow"
    (models / "aliases.json").unlink()
    assert np.array_equal(match(load(models)), expected)
    assert find_experiment(models) == find_experiment("small")
    assert find_experiment("vgg16") is None
    for use in (load, find_experiment):
        with pytest.raises(ValueError, match=r"'nothing' is neither .* models are default, small, vgg16"):
            use("nothing")
    export_model(run, "other", models)
    with pytest.raises(ValueError, match="2 models"):
        load(models)


def test_vgg16_always_exists_and_trains_nothing(models) -> None:
    matcher = load("vgg16")
    assert list_models() == ["default", "vgg16"]
    assert find_experiment("default") is None
    assert not list(matcher.parameters())
    assert matcher.decoding == {}  # the discrete constraint, with its own settings
    result = matcher.match(PICTURE, POINTS, PICTURE, POINTS[::-1])
    assert result.pairs.tolist() == [[i, 5 - i] for i in range(6)]


def test_damage_and_misfit_are_named(run, models) -> None:
    export_model(run, "small", models)
    card = json.loads((models / "small.json").read_text())
    content = (models / "small.safetensors").read_bytes()
    (models / "small.safetensors").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(ValueError, match=r"small\.safetensors is damaged"):
        load("small")
    (models / "small.safetensors").write_bytes(content)
    (models / "small.json").write_text(json.dumps(card | {"format": 99}))
    with pytest.raises(ValueError, match="format 99"):
        load("small")
    card["experiment"]["head"]["options"]["width"] = 16
    (models / "small.json").write_text(json.dumps(card))
    with pytest.raises(ValueError, match="needs"):
        load("small")
    shutil.copy(models / "small.safetensors", models / "lost.safetensors")
    with pytest.raises(FileNotFoundError, match=r"lost\.json"):
        load(models / "lost.safetensors")
    with pytest.raises(ValueError, match="plain file name"):
        export_model(run, "a/b", models)
    with pytest.raises(ValueError, match="float8"):
        export_model(run, "small", models, number="float8")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("[1]", "must hold a JSON object.* a list"),
        ("{", "is not JSON"),
        ({"sha256": None}, "the key 'sha256' cannot hold None"),
        ({"experiment": []}, "the key 'experiment' cannot hold a list"),
        ({"experiment": {}}, "data: must be given"),
        (("sha256",), "the key 'sha256' is missing"),
        (("initial_weights",), "the key 'initial_weights' is missing"),
    ],
)
def test_a_broken_card_is_named_with_its_key(run, models, change, expected: str) -> None:
    path = export_model(run, "small", models)
    card = json.loads(path.read_text())
    if isinstance(change, str):
        path.write_text(change)
    elif isinstance(change, dict):
        path.write_text(json.dumps(card | change))
    else:
        path.write_text(json.dumps({key: value for key, value in card.items() if key not in change}))
    for place in ("small", models / "small.safetensors"):
        with pytest.raises(ValueError, match=rf"small\.\w+.*{expected}"):
            load(place)


def test_a_file_that_is_no_model_is_named(run, models, tmp_path) -> None:
    path = export_model(run, "small", models)
    card = json.loads(path.read_text())
    for content in (b"", b"no model", b"\xff" * 64):
        path.with_suffix(".safetensors").write_bytes(content)
        path.write_text(json.dumps(card | {"sha256": hashlib.sha256(content).hexdigest()}))
        with pytest.raises(ValueError, match=r"small\.safetensors is damaged: .*; copy or export"):
            load("small")
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    for name in (tmp_path / "a", tmp_path / "a" / "model.json", "~nobody-of-this-name/model"):
        with pytest.raises(ValueError, match="is neither a model nor a file nor a folder"):
            load(name)


def test_a_damaged_run_is_not_exported(run, models, tmp_path) -> None:
    shutil.copytree(run, tmp_path / "run")
    path = next((tmp_path / "run" / "checkpoints").glob("*/model.safetensors"))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged"):
        export_model(tmp_path / "run", "small", models)
    assert not models.exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[]", "must hold a JSON object"),
        ('{"format": 1}', "the key 'experiment' is missing"),
        ('{"format": 1, "experiment": 3}', "the key 'experiment' cannot hold 3"),
    ],
)
def test_a_broken_record_of_a_run_is_named(tmp_path, text: str, expected: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ValueError, match=rf"run\.json.*{expected}"):
        load(tmp_path)


def test_other_initial_weights_are_warned_about(run, models, monkeypatch) -> None:
    export_model(run, "small", models)
    state = {key: value + 0.1 for key, value in load_file(run.parent / "vgg16.safetensors").items()}
    monkeypatch.setattr("quadmatch.features.levels.resolve_vgg16", lambda path: state)
    with pytest.warns(UserWarning, match="other initial weights"):
        load("small")


def test_command_puts_figures_onto_the_card(run, models, tmp_path) -> None:
    figures = tmp_path / "result.json"
    figures.write_text(json.dumps({"mean": {"accuracy": 71.5}, "protocol": "intersection", "classes": {}}))
    words = [run, "small", "--out", models, "--figures", figures]
    done = CliRunner().invoke(_make_app(), [str(word) for word in words])
    assert done.exit_code == 0, done.output
    assert "MB" in done.output
    assert read_card(models / "small.json")["figures"] == [{"protocol": "intersection", "mean": {"accuracy": 71.5}}]


@pytest.mark.parametrize(("commit", "told"), [("1234567", False), ("1234567+changes", True)])
def test_an_export_says_if_no_commit_holds_the_code(run, tmp_path, commit: str, told: bool) -> None:
    record = json.loads((run / "run.json").read_text())
    record["origin"]["commit"] = commit
    copy = shutil.copytree(run, tmp_path / "run")
    (copy / "run.json").write_text(json.dumps(record))
    done = CliRunner().invoke(_make_app(), [str(copy), "small", "--out", str(tmp_path)])
    assert ("no commit holds that code" in done.output) == told


def _make_app() -> typer.Typer:
    app = typer.Typer()
    app.command()(export_command)
    return app


def test_the_data_of_a_model_is_the_default(run, tiny) -> None:
    assert choose_data(run).name == "willow"
    assert choose_data(run).root == tiny / "data"
    assert choose_data(run, options={"crop": True}).options == {"crop": True}
    other = choose_data(run, "photo-warps", options={"views": 3})
    assert (other.name, other.root, other.size, other.options) == ("photo-warps", None, 32, {"views": 3})
    with pytest.raises(ValueError, match="name the one"):
        choose_data("vgg16")
    assert choose_data("vgg16", "willow").size == 256


def test_an_evaluation_says_how_long_it_took(run, tmp_path, monkeypatch) -> None:
    ticks = iter([1000.0, 1002.5])
    monkeypatch.setattr("quadmatch.evaluation.trial.perf_counter", lambda: next(ticks))
    found = try_model(run, choose_data(run), Conditions(split="train", pairs=2), cache=tmp_path)
    assert found.about["seconds"] == 2.5


def test_what_ships_loads_and_is_small() -> None:
    aliases = read_aliases()
    shipped_cards = [path for path in shipped.MODELS.glob("*.json") if path.name != "aliases.json"]
    assert set(aliases.values()) <= {"vgg16", *(path.stem for path in shipped_cards)}
    assert sum(path.stat().st_size for path in shipped.MODELS.glob("*.safetensors")) <= 80 * 10**6
    for path in shipped_cards:
        card = read_card(path)
        assert card["name"] == path.stem
        assert card["figures"]
        with pytest.warns(UserWarning, match="other initial weights"):  # those of the tiny data set
            assert match(load(path.stem)).shape == (6, 6)
