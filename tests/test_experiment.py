from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal, TypedDict, Unpack

import pytest

from quadmatch.experiment import (
    Experiment,
    ExperimentError,
    check_experiment,
    list_experiments,
    read_experiment,
)
from quadmatch.options import OptionsError, check_options, list_options

MINIMAL = {"data": {"name": "willow"}, "head": {"method": "qcdgm1"}}
TOML = '[data]\nname = "willow"\n[head]\nmethod = "qcdgm1"\n'


class Extra(TypedDict, total=False):
    depth: int
    width: int | None


def factory(kind: Literal["a", "b"], rate: float = 0.5, **extra: Unpack[Extra]) -> None: ...


def test_options_are_those_of_the_signature() -> None:
    assert list_options(factory) == {
        "kind": Literal["a", "b"],
        "rate": float,
        "depth": int,
        "width": int | None,
    }
    assert "kind" not in list_options(partial(factory, "a"), given=("kind",))
    assert check_options(factory, {"kind": "b", "rate": 1, "width": None}) == {
        "kind": "b",
        "rate": 1.0,
        "width": None,
    }


def test_each_wrong_option_is_named() -> None:
    with pytest.raises(OptionsError) as caught:
        check_options(factory, {"kind": "c", "dept": 3, "depth": "deep", "zzz": 1})
    assert set(caught.value.problems) == {"kind", "dept", "depth", "zzz"}
    assert "'depth'" in caught.value.problems["dept"]
    assert "width" in caught.value.problems["zzz"]


@pytest.mark.parametrize("name", list_experiments())
def test_shipped_experiments_are_valid(name: str) -> None:
    experiment = read_experiment(name)
    assert read_experiment(f"experiments/{name}.toml") == experiment
    assert check_experiment(experiment.model_dump(mode="json"), "copy") == experiment
    assert experiment.data.name == ("willow" if "willow" in name else "pascal-voc")
    assert experiment.head.method == name.split("_")[0]


@pytest.mark.parametrize("name", [name for name in list_experiments() if name.endswith("published")])
def test_published_schedule(name: str) -> None:
    experiment = read_experiment(name)
    training = experiment.training
    assert (training.optimiser, training.momentum, training.nesterov) == ("sgd", 0.9, True)
    assert training.learning_rate == training.backbone_learning_rate == 1e-3
    assert experiment.features.level == "full"
    assert experiment.loss.options == {"alpha": 2.0, "beta": 0.1}
    assert {"preset": "paper", "outer": 3, "inner": 5}.items() <= experiment.head.options.items()


def test_changes_are_typed(tmp_path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(TOML)
    changes = [
        "training.seed=3",
        "training.learning_rate=1e-3",
        "features.level=frozen",
        "data.root=/some/where",
    ]
    changes += ["head.options.width=32", "training.patience = 4", "training.milestones=[0.5, 0.9]"]
    changed = read_experiment(path, changes)
    assert (changed.training.seed, changed.training.learning_rate, changed.training.patience) == (3, 1e-3, 4)
    assert changed.features.level == "frozen"
    assert str(changed.data.root) == "/some/where"
    assert changed.head.options == {"width": 32}
    assert changed.training.milestones == (0.5, 0.9)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("training.sed=3", "training.sed: unknown key; is 'seed' meant?"),
        ("trainng.seed=3", "trainng: unknown key; is 'training' meant?"),
        ("training.seed=-1", "training.seed: "),
        ("training.seed=three", "training.seed: "),
        ("training.optimiser=lamb", "training.optimiser: "),
        ("training.learning_rate=nan", "training.learning_rate: "),
        ("head.method=qcdgm9", "head.method: must be one of "),
        ("head.options.wdth=3", "head.options.wdth: unknown key; is 'width' meant?"),
        ("head.options.width=wide", "head.options.width: "),
        ("loss.options.gamma=1", "loss.options.gamma: unknown key"),
        ("data.options.croop=true", "data.options.croop: unknown key; is 'crop' meant?"),
        ("data.options.root=x", "data.options.root: unknown key"),
        ("data.name=cifar", "data.name: must be one of "),
        ("data.construction=ring", "data.construction: must be one of "),
        ("decoding.weight=2", "decoding.weight: "),
        ("data.name.first=2", "'name' is a value"),
        ("training.seed", "expected something like"),
        ("=3", "expected something like"),
    ],
)
def test_errors_name_file_and_key(change: str, expected: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        check_experiment(MINIMAL, "mine.toml", [change])
    assert expected in str(caught.value)
    assert "mine.toml: " in str(caught.value) or "--set" in str(caught.value)


def test_every_problem_is_reported_at_once() -> None:
    with pytest.raises(ExperimentError) as caught:
        check_experiment({"data": {"nam": "willow"}, "training": {"steps": 0}}, "mine.toml")
    lines = str(caught.value).splitlines()
    assert [line.split(":")[1].strip() for line in lines] == [
        "data.name",
        "data.nam",
        "head",
        "training.steps",
    ]


def test_files_that_are_missing_or_broken(tmp_path) -> None:
    with pytest.raises(ExperimentError, match=r"no file .*nowhere.*shipped are"):
        read_experiment("nowhere")
    broken = tmp_path / "broken.toml"
    broken.write_text("[data\n")
    with pytest.raises(ExperimentError, match=r"broken\.toml: not TOML"):
        read_experiment(broken)


def test_changes_leave_the_tables_alone() -> None:
    check_experiment(MINIMAL, "mine.toml", ["training.seed=3"])
    assert "training" not in MINIMAL


def test_the_documentation_has_every_key_with_its_meaning() -> None:
    text = (Path(__file__).parents[1] / "docs" / "training.md").read_text(encoding="utf-8")
    for section, field in Experiment.model_fields.items():
        for key, setting in field.annotation.model_fields.items():
            assert f"| `{section}.{key}` |" in text
            assert f"| {setting.description} |" in text
    for name in list_experiments():
        assert name.removesuffix("_published") in text
