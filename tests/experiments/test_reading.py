from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal, TypedDict, Unpack, get_args

import pytest

from quadmatch.experiments.options import OptionsError, check_options, list_options
from quadmatch.experiments.reading import Experiment, ExperimentError, check_experiment, read_experiment
from quadmatch.experiments.shipped import list_experiments
from quadmatch.methods import METHODS
from quadmatch.models.runs import create_run, read_run
from quadmatch.reproduce.rows import PEERS

DEEP = "[" * 5000 + "]" * 5000
MINIMAL = {"data": {"name": "willow"}, "head": {"method": "dgm1"}}
TOML = '[data]\nname = "willow"\n[head]\nmethod = "dgm1"\n'


class Extra(TypedDict, total=False):
    depth: int
    width: int | None


def factory(kind: Literal["a", "b"], rate: float = 0.5, **extra: Unpack[Extra]) -> None: ...


def test_options_are_those_of_the_signature() -> None:
    assert list_options(factory) == {"kind": Literal["a", "b"], "rate": float, "depth": int, "width": int | None}
    assert "kind" not in list_options(partial(factory, "a"), given=("kind",))
    assert check_options(factory, {"kind": "b", "rate": 1, "width": None}) == {"kind": "b", "rate": 1.0, "width": None}


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
    label, method = name.split("_")[0], experiment.head.method
    reading = {"published": "_paper", "paper": "_paper", "released": "_released"}.get(name.split("_")[-1], "")
    assert method.endswith(reading)
    assert label.removeprefix("qc").startswith(method.removesuffix(reading))
    assert (experiment.constraint is not None) == label.startswith("qc")
    losses = {"pcah": "hungarian_attention", "pcaf": "false_matching"}
    usual = losses.get(label, METHODS[method].loss)
    assert experiment.loss.name == ("permutation" if name.endswith("_f1") else usual)


def test_what_the_paper_compares_with_is_trained_alike() -> None:
    ours = read_experiment("qcdgm1_willow")
    for start in PEERS.values():
        experiment = read_experiment(f"{start}_willow")
        assert (experiment.training, experiment.features, experiment.data) == (ours.training, ours.features, ours.data)
        assert experiment.loss.options.get("earlier", 0.0) == 0.0


@pytest.mark.parametrize("name", [name for name in list_experiments() if name.endswith("published")])
def test_published_schedule(name: str) -> None:
    experiment = read_experiment(name)
    training = experiment.training
    assert (training.optimiser, training.momentum, training.nesterov) == ("sgd", 0.9, True)
    assert training.learning_rate == training.backbone_learning_rate == 1e-3
    assert experiment.features.level == "full"
    assert experiment.loss.options == {"alpha": 2.0, "beta": 0.1}
    assert experiment.head.method.endswith("_paper")
    assert experiment.constraint is not None
    assert experiment.constraint.network == {}  # the paper's own settings are the defaults


def test_changes_are_typed(tmp_path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(TOML)
    changes = ["training.seed=3", "training.learning_rate=1e-3", "features.level=frozen", "data.root=/some/where"]
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
        ("head.method=dgm9", "head.method: must be one of "),
        ("head.method=qcdgm1", "head.method: is 'dgm1' with a table [constraint]"),
        ("head.options.outer=2", "head.options.outer: belongs to constraint.network"),
        ("constraint.network.outre=2", "constraint.network.outre: unknown key; is 'outer' meant?"),
        ("constraint.network.weight=2", "constraint.network.weight: must be from 0 to 1"),
        ("constraint.decoding.threshold=2", "constraint.decoding.threshold: unknown key"),
        ("head.options.wdth=3", "head.options.wdth: unknown key; is 'width' meant?"),
        ("head.options.width=wide", "head.options.width: "),
        ("loss.options.gamma=1", "loss.options.gamma: unknown key"),
        ("data.options.croop=true", "data.options.croop: unknown key; is 'crop' meant?"),
        ("data.options.root=x", "data.options.root: unknown key"),
        ("data.name=cifar", "data.name: must be one of "),
        ("data.construction=ring", "data.construction: must be one of "),
        ("constraint.decoding.weight=2", "constraint.decoding.weight: must be from 0 to 1"),
        ("data.name.first=2", "'name' is a value"),
        (f"training.steps={10**400}", "training.steps: Input should be less than or equal to 1000000000, got 1000"),
        (f"training.classes={10**400}", "training.classes: Input should be less than or equal to 1000000000"),
        ("training.steps=0", "training: no steps and no start make no network"),
        (f"training.seed=-{10**400}", "training.seed: Input should be greater than or equal to 0, got -1000"),
        (f"head.options.width={DEEP}", "--set 'head.options.width=[[[["),
        (f"head.options.width={'[' * 200}{']' * 200}", "head.options.width: Input should be a valid integer, got [["),
        (f"training.seed={'9' * 5000}", "digits"),
        (r'data.root="a\u0000b"', "data.root: no file or folder has NUL in its name, got"),
        (r'training.start="a\u0000b"', "training.start.0: no file or folder has NUL in its name, got"),
        ("training.seed", "expected something like"),
        ("=3", "expected something like"),
    ],
)
def test_errors_name_file_and_key(change: str, expected: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        check_experiment(MINIMAL, "mine.toml", [change])
    assert expected in str(caught.value)
    assert "mine.toml: " in str(caught.value) or "--set" in str(caught.value)
    assert len(str(caught.value)) < 600


def test_every_problem_is_reported_at_once() -> None:
    with pytest.raises(ExperimentError) as caught:
        check_experiment({"data": {"nam": "willow"}, "training": {"steps": -1}}, "mine.toml")
    lines = str(caught.value).splitlines()
    assert [line.split(":")[1].strip() for line in lines] == ["data.name", "data.nam", "head", "training.steps"]


def test_files_that_are_missing_or_broken(tmp_path) -> None:
    with pytest.raises(ExperimentError, match=r"no file .*nowhere.*shipped are"):
        read_experiment("nowhere")
    broken = tmp_path / "broken.toml"
    broken.write_text("[data\n")
    with pytest.raises(ExperimentError, match=r"broken\.toml: not TOML"):
        read_experiment(broken)
    for text, fault in ((f"x = {DEEP}", "nested too deeply"), (f"x = {'9' * 5000}", "digits"), ("x = 1\xe9", "decode")):
        broken.write_bytes(text.encode("latin-1"))
        with pytest.raises(ExperimentError, match=rf"broken\.toml: .*{fault}"):
            read_experiment(broken)


def write_base(tmp_path: Path, own: str, base: str = "") -> Path:
    (tmp_path / "common.toml").write_text(
        base or TOML + "options = { width = 8, layers = 2 }\n[training]\nseed = 3\nsteps = 9\n"
    )
    (tmp_path / "mine.toml").write_text(own)
    return tmp_path / "mine.toml"


def test_a_base_holds_where_nothing_is_said(tmp_path) -> None:
    path = write_base(tmp_path, 'base = "common.toml"\n[head.options]\nwidth = 16\n[training]\nsteps = 4\n')
    experiment = read_experiment(path, ["training.objects=3"])
    assert (experiment.training.seed, experiment.training.steps, experiment.training.objects) == (3, 4, 3)
    assert experiment.head.options == {"width": 16, "layers": 2}
    assert experiment.data.name == "willow"
    assert "base" not in create_run(tmp_path / "run", experiment, "float32", 1).experiment.model_dump()
    assert read_run(tmp_path / "run").experiment == experiment


def test_options_of_another_method_or_loss_are_not_taken_over(tmp_path) -> None:
    own = 'base = "qcdgm1_willow"\n[head]\nmethod = "dgm2"\n[loss]\nname = "permutation"\n'
    experiment = read_experiment(write_base(tmp_path, own))
    assert (experiment.head.options, experiment.loss.options) == ({}, {})
    assert experiment.training == read_experiment("qcdgm1_willow").training
    same = read_experiment(write_base(tmp_path, 'base = "qcdgm1_willow"\n[loss.options]\nalpha = 1.5\n'))
    assert same.loss.options == read_experiment("qcdgm1_willow").loss.options | {"alpha": 1.5}


def test_errors_name_the_file_in_which_the_key_stands(tmp_path) -> None:
    base = TOML + "options = { wdth = 8 }\n[training]\nsteps = -1\nseed = -1\n"
    path = write_base(tmp_path, 'base = "common.toml"\n[training]\nseed = -2\nsteepness = 3\n', base)
    with pytest.raises(ExperimentError) as caught:
        read_experiment(path)
    lines = {line.split(": ")[1]: line for line in str(caught.value).splitlines()}
    assert lines.keys() == {"head.options.wdth", "training.seed", "training.steps", "training.steepness"}
    for key, file in (("head.options.wdth", "common"), ("training.steps", "common"), ("training.seed", "mine")):
        assert lines[key].split(": ")[0].endswith(f"{file}.toml")
    assert "mine.toml: training.steepness: unknown key" in lines["training.steepness"]


@pytest.mark.parametrize(
    ("own", "base", "expected"),
    [
        ('base = "common.toml"', 'base = "qcdgm1_voc"', r"mine\.toml: base: 'common\.toml' has a base itself"),
        ('base = "mine.toml"', "", r"mine\.toml: base: 'mine\.toml' has a base itself"),
        ('base = "nowhere"', "", r"mine\.toml: base: there is no file .*nowhere and no experiment 'nowhere'"),
        ("base = 3", "", r"mine\.toml: base: must be the name of an experiment or of a file, got 3"),
        ('base = "common.toml"', "[data", r"common\.toml: not TOML"),
    ],
)
def test_bases_that_cannot_be_used(tmp_path, own: str, base: str, expected: str) -> None:
    with pytest.raises(ExperimentError, match=expected):
        read_experiment(write_base(tmp_path, own, base))


@pytest.mark.parametrize("data", ["voc", "willow"])
def test_the_published_experiments_differ_in_the_network_alone(data: str) -> None:
    first, second = (read_experiment(f"qcdgm{number}_{data}_published") for number in (1, 2))
    assert second.head.method == "dgm2_paper"
    assert first.head.options == second.head.options
    assert first.model_copy(update={"head": second.head}) == second


def test_changes_leave_the_tables_alone() -> None:
    check_experiment(MINIMAL, "mine.toml", ["training.seed=3"])
    assert "training" not in MINIMAL


def test_the_documentation_has_every_key_with_its_meaning() -> None:
    text = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
    for section, field in Experiment.model_fields.items():
        table = next((one for one in get_args(field.annotation) if one is not type(None)), field.annotation)
        for key, setting in table.model_fields.items():
            assert f"| `{section}.{key}` |" in text
            assert f"| {setting.description} |" in text
    for name in list_experiments():
        assert name.removesuffix("_published") in text
