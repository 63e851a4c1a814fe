from __future__ import annotations

import json
import shutil
import tomllib
from dataclasses import replace
from importlib import resources
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
import torch
import typer
from tiny_experiment import tiny_experiment, write_experiment, write_tiny
from typer.testing import CliRunner

from quadmatch.cli import app as main
from quadmatch.commands.reproduce import reproduce as command
from quadmatch.datasets import DATASETS
from quadmatch.datasets.willow import willow
from quadmatch.decode import decode
from quadmatch.drawing.canvas import make_canvas
from quadmatch.evaluation.report import Conditions
from quadmatch.evaluation.trial import try_model
from quadmatch.experiments.reading import read_experiment
from quadmatch.features.levels import build_extractor
from quadmatch.matcher import Matcher
from quadmatch.methods.dot_product import DotProduct
from quadmatch.models.checkpoints import load_parameters, read_state
from quadmatch.models.load import list_models
from quadmatch.models.runs import read_run
from quadmatch.reproduce import ITEMS, reuse
from quadmatch.reproduce.items import Figure, Output, Row, Settings, Table
from quadmatch.reproduce.making import name_files
from quadmatch.reproduce.merging import are_alike, keep_rows
from quadmatch.reproduce.reuse import evaluate_once, hash_model, name_run, train
from quadmatch.reproduce.tables import RowResult, list_lines, make_table, read_published, reproduce_row, summarise
from quadmatch.training.fit import fit


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = write_tiny(tmp_path_factory.mktemp("tiny"))
    write_experiment(tiny_experiment(folder, ["training.steps=10"]), folder / "small.toml")
    return folder


@pytest.fixture(scope="module")
def table(tiny):
    experiment, without = str(tiny / "small.toml"), ("constraint=none",)
    rows = {
        "untrained": Row(model="vgg16", constraint=False),
        "ours": Row(experiment, paper="qc-DGM1"),
        "without": Row(experiment, changes=without),
    }
    compared = (("ours", "without"), ("ours", "not there"))
    return replace(ITEMS["willow"], split="validation", pairs=5, seeds=2, rows=rows, compared=compared, note="A note.")


@pytest.fixture
def invoke(tiny, table, monkeypatch):
    weights, precision = tiny / "vgg16.safetensors", "float32,channels_last,1"
    small = Matcher(build_extractor("frozen", weights=weights, precision=precision, size=32), DotProduct())
    monkeypatch.setattr("quadmatch.models.load.build_untrained", lambda precision: small.eval())
    monkeypatch.setenv("QUADMATCH_PRECISION", precision)
    monkeypatch.setenv("QUADMATCH_CACHE", str(tiny / "usual"))
    monkeypatch.setitem(ITEMS, "tiny", table)
    app = typer.Typer()
    app.command()(command)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})


def test_a_table_is_trained_evaluated_printed_and_reused(invoke, tiny, tmp_path, monkeypatch) -> None:
    words = ["tiny", "--root", tiny / "data", "--out", tmp_path]
    done = invoke(*words)
    assert done.exit_code == 0, done.output
    assert "ours, paper" in done.output
    assert "ours, here" in done.output
    assert "without, paper" not in done.output
    assert "96.0" in done.output
    kept = json.loads((tmp_path / "tiny.json").read_text())
    assert {"command", "date", "hardware", "commit"} <= kept.keys()
    ours = kept["rows"]["ours"]
    figures = [one["mean"] for one in ours["seeds"]]
    assert [one["training_seed"] for one in ours["seeds"]] == [0, 1]
    assert ours["mean"]["mean"] == pytest.approx(fmean(figures), abs=1e-3)
    assert ours["std"]["mean"] == pytest.approx(stdev(figures), abs=1e-3)
    assert ours["paper"]["Car"] == 93.8
    assert len(kept["rows"]["untrained"]["seeds"]) == 1
    gain = ours["mean"]["mean"] - kept["rows"]["without"]["mean"]["mean"]
    assert kept["compared"].keys() == {"ours against without"}
    assert kept["compared"]["ours against without"]["gain"] == pytest.approx(gain, abs=2e-3)
    text = (tmp_path / "tiny.md").read_text()
    assert "| mean |" in text
    assert "A note." in text
    assert "ours against without: " in text
    runs = {path.name for path in (tmp_path / "runs").iterdir()}
    kinds = ("small", "small-constraint=none")
    assert runs == {f"{kind}-seed{seed}" for kind in kinds for seed in (0, 1)}

    monkeypatch.setattr("quadmatch.training.fit.fit", None)  # nothing may train or evaluate again
    monkeypatch.setattr("quadmatch.training.fit.resume", None)
    monkeypatch.setattr("quadmatch.reproduce.reuse.try_model", None)
    assert invoke(*words).exit_code == 0
    again = json.loads((tmp_path / "tiny.json").read_text())
    assert again["rows"] == kept["rows"]


def test_all_is_everything_in_order_and_what_fails_is_not_the_end(invoke, tiny, table, tmp_path, monkeypatch) -> None:
    def fail(settings):
        raise FileNotFoundError("no pictures")

    rows = {"untrained": table.rows["untrained"]}
    monkeypatch.setattr("quadmatch.reproduce.making.ITEMS", {"a": replace(table, rows=rows), "b": Figure("b", fail)})
    monkeypatch.setitem(ITEMS, "b", Figure("b", fail))
    done = invoke("all", "--root", tiny / "data", "--out", tmp_path, "--quick", "--json", tmp_path / "all.json")
    assert done.exit_code == 1
    assert "b: no pictures" in str(done.exception)
    assert done.output.index("1 of 2: a") < done.output.index("2 of 2: b") < done.output.index("left out: b: no pict")
    assert (tmp_path / "a-quick.md").is_file()
    assert json.loads((tmp_path / "all.json").read_text()).keys() == {"a"}
    assert "--row belongs to one table" in str(invoke("all", "--row", "x").exception)


def test_an_unfinished_run_goes_on(invoke, tiny, table, tmp_path, monkeypatch) -> None:
    import quadmatch.training.loop as loop

    settings = Settings(tmp_path, root=tiny / "data", say=lambda line: None)
    row = table.rows["ours"]
    measure = loop._measure

    def stop(trainer, progress, *rest):
        measure(trainer, progress, *rest)
        if progress.step == 4:
            loop.save(trainer, read_run(tmp_path / "runs" / "small-seed0"), progress)
            raise KeyboardInterrupt

    monkeypatch.setattr(loop, "_measure", stop)
    with pytest.raises(KeyboardInterrupt):
        train(row, 0, "validation", settings)
    monkeypatch.setattr(loop, "_measure", measure)
    folder = train(row, 0, "validation", settings)
    assert read_state(folder)["step"] == 10
    changed = replace(row, changes=("training.learning_rate=1.0",))
    monkeypatch.setattr("quadmatch.reproduce.reuse.name_run", lambda *given: "small-seed0")
    with pytest.raises(ValueError, match="another experiment"):
        train(changed, 0, "validation", settings)
    with pytest.raises(ValueError, match="no test"):
        train(replace(row, changes=("data.split=trainval",)), 0, "validation", settings)


def test_a_row_begins_with_the_parameters_of_the_row_before_it(invoke, tiny, table, tmp_path) -> None:
    settings = Settings(tmp_path, root=tiny / "data", changes=("training.steps=1",), say=lambda line: None)
    first = table.rows["ours"]
    row = replace(first, changes=("training.learning_rate=1e-12",), start=(first,))
    folder = train(row, 0, "validation", settings)
    assert folder.name == "small-learning_rate=1e-12-steps=1-after-small-steps=1-seed0-seed0"
    begun, ended = (load_parameters(one) for one in (tmp_path / "runs" / "small-steps=1-seed0", folder))
    assert all(torch.allclose(begun[name], ended[name], atol=1e-6) for name in begun)
    assert train(row, 0, "validation", settings) == folder
    assert read_run(folder).experiment.training.seed == 1
    assert replace(row, start=(first, row)).count_starts() == 2


def test_folds_are_trained_on_the_others_and_tested_once_each(invoke, tiny, table, tmp_path, monkeypatch) -> None:
    folds = replace(table, folds=2, rows={"ours": table.rows["ours"]})
    monkeypatch.setitem(ITEMS, "tiny", folds)
    words = ["tiny", "--root", tiny / "data", "--out", tmp_path, "--set", "training.steps=1"]
    done = invoke(*words)
    assert done.exit_code == 0, done.output
    assert "ours, fold 2 of 2" in done.output
    assert "2 folds" in done.output
    runs = sorted((tmp_path / "runs").iterdir())
    assert [read_run(run).experiment.data.split for run in runs] == ["rest-1-of-2", "rest-2-of-2"]
    tested = [json.loads(next(run.glob("evaluations/*.json")).read_text())["split"] for run in runs]
    assert tested == ["fold-1-of-2", "fold-2-of-2"]
    assert len(json.loads((tmp_path / "tiny.json").read_text())["rows"]["ours"]["seeds"]) == 2
    with pytest.raises(ValueError, match="trained on train: fold-1-of-2 would be no test"):
        train(table.rows["ours"], 0, "fold-1-of-2", Settings(tmp_path, root=tiny / "data"))


def test_a_row_made_anew_leaves_the_others_of_the_record(invoke, tiny, tmp_path) -> None:
    words = ["tiny", "--root", tiny / "data", "--out", tmp_path, "--set", "training.steps=1"]
    for row in ("without", "untrained"):
        assert invoke(*words, "--row", row).exit_code == 0
    one = json.loads((tmp_path / "tiny.json").read_text())
    assert list(one["rows"]) == ["untrained", "without"]  # In the order of the table.
    assert (tmp_path / "tiny.md").read_text().count("without") == 1
    assert invoke(*words).exit_code == 0
    whole = json.loads((tmp_path / "tiny.json").read_text())
    assert invoke(*words, "--row", "untrained").exit_code == 0
    again = json.loads((tmp_path / "tiny.json").read_text())
    assert again["rows"] == whole["rows"]
    assert again["compared"] == whole["compared"] != {}
    assert invoke(*words, "--row", "ours").exit_code == 0
    assert json.loads((tmp_path / "tiny.json").read_text())["compared"] == {}  # Of rows of two makings: not known.
    done = invoke(*words, "--row", "ours", "--seeds", "1")
    assert "tiny-rows.json" in done.output
    assert json.loads((tmp_path / "tiny.json").read_text())["rows"] == whole["rows"]
    assert list(json.loads((tmp_path / "tiny-rows.json").read_text())["rows"]) == ["ours"]


def test_a_quick_look_is_kept_apart(invoke, tiny, tmp_path) -> None:
    done = invoke("tiny", "--quick", "--row", "ours", "--root", tiny / "data", "--out", tmp_path)
    assert done.exit_code == 0, done.output
    assert "not a result" in done.output
    assert read_state(tmp_path / "runs" / "small-quick-seed0")["step"] == 1
    assert (tmp_path / "tiny-quick.json").is_file()


def test_names_of_runs_and_wrong_names(invoke) -> None:
    settings = Settings(Path(), changes=("training.threads=2", 'data.protocol="inclusion"'))
    assert name_run(Row("a_voc"), 3, settings) == "a_voc-protocol=inclusion-seed3"
    for words, reason in ((["none"], "must be one of"), (["tiny", "--row", "x"], "no row 'x'")):
        done = invoke(*words)
        assert done.exit_code == 1
        assert reason in str(done.exception)


@pytest.mark.parametrize("quick", [False, True])
def test_every_run_has_a_folder_of_its_own_that_file_systems_take(quick) -> None:
    settings = Settings(Path(), quick=quick, changes=("features.precision=float32", "training.flip=false"))
    tables = [item for item in ITEMS.values() if isinstance(item, Table)]
    trained = [row for table in tables for row in table.rows.values() if row.experiment]
    named: dict[str, set[str]] = {}
    for row in [*trained, *(start for one in trained for start in one.start)]:
        name = name_run(row, 0, settings)
        assert len(name.encode()) <= 200, name
        named.setdefault(name, set()).add(repr((row.experiment, row.changes, row.start)))
    assert [runs for runs in named.values() if len(runs) > 1] == []
    assert any(row.start and name_run(row, 1, settings).endswith("-seed1") for row in trained)


def test_tables_name_what_exists() -> None:
    content = tomllib.loads((resources.files("quadmatch.reproduce") / "published.toml").read_text("utf-8"))
    for table in content.values():
        for figures in table["rows"].values():
            assert len(figures) == len(table["columns"])
            # The paper's own means are off by up to 0.45, in the row with the misprinted entries.
            if len(figures) > 1:
                assert figures[-1] == pytest.approx(fmean(figures[:-1]), abs=0.5)
    for table in ITEMS.values():
        if not isinstance(table, Table):
            continue
        title, published = read_published(table.published)
        assert title
        for row in table.rows.values():
            assert row.model in (None, *list_models())
            if row.experiment is not None:
                read_experiment(row.experiment, row.changes)  # every key is known
            assert row.paper is None or row.paper in published


def test_spread_over_seeds() -> None:
    results = [{"classes": {"a": {"f1": value}}, "mean": {"f1": value}} for value in (50.0, 60.0)]
    found = summarise(results, "f1", {"a": 51.0, "mean": 51.0})
    row = RowResult("ours", found["mean"], found["std"], found["paper"])
    assert row.describe("a") == "55.0 ± 7.1"
    one = summarise(results[:1], "f1", {})
    assert RowResult("ours", one["mean"], one["std"], {}).describe("mean") == "50.0"
    assert list_lines([row])[:2] == [["class", "ours, here", "ours, paper"], ["a", "55.0 ± 7.1", "51.0"]]


def other(root, split, *, least: int = 1):
    """Another data set with the same classes and splits as Willow."""
    return willow(root, split)[least:]


def test_an_evaluation_is_reused_only_if_all_that_it_depends_on_is_the_same(
    invoke, tiny, tmp_path, monkeypatch
) -> None:
    monkeypatch.setitem(DATASETS, "other", other)
    moved = tmp_path / "moved"
    shutil.copytree(tiny / "data", moved)
    settings = Settings(tmp_path / "out", root=tiny / "data", say=lambda line: None)
    made = []
    monkeypatch.setattr(reuse, "try_model", lambda *given, **more: made.append(given) or try_model(*given, **more))

    def evaluate(dataset="willow", options=None, settings=settings, references=None, **conditions):
        conditions = Conditions(**{"split": "validation", "pairs": 3} | conditions)
        return evaluate_once("vgg16", dataset, conditions, settings, options, references=references)

    first = evaluate()
    assert evaluate("other")["dataset"] == "other"
    evaluate("other", {"least": 2})
    for change in (
        {"outliers": 2},
        {"seed": 1},
        {"constraint": False},
        {"partial": True},
        {"pairs": 4},
        {"decoding": {}},
        {"local_maps": 0.1},
    ):
        evaluate(**change)
    evaluate(outliers=2, outlier_kind="uniform")
    assert evaluate(references="train")["references"] == "train"
    assert len(made) == 12
    assert evaluate() == first
    (kept,) = [path for path in (tmp_path / "out").rglob("*.json") if json.loads(path.read_text()) == first]
    kept.write_text(
        json.dumps({key: value for key, value in first.items() if key != "by_pair"})
    )  # of an earlier version
    assert "by_pair" not in evaluate()
    again = evaluate_once("vgg16", "willow", Conditions("validation", pairs=3), settings, by_pair=True)
    assert again["by_pair"] == first["by_pair"]
    assert len(made) == 13
    first, made[:] = again, made[:10]
    assert evaluate(settings=replace(settings, root=moved)) == first  # the same objects elsewhere
    assert evaluate("other", {"least": 2})["options"] == {"least": 2}
    assert len(made) == 10
    for path in (moved / "WILLOW-ObjectClass" / "Car").glob("*.png"):
        path.write_bytes(path.read_bytes() + b"changed")
    reuse._hash_objects.cache_clear()
    monkeypatch.setattr(reuse, "try_model", None)
    with pytest.raises(TypeError):  # another picture at the same place: it would have to be computed
        evaluate(settings=replace(settings, root=moved))


def test_another_decoding_is_used_instead_of_the_models_own(invoke, tiny, table, tmp_path, monkeypatch) -> None:
    used = []
    monkeypatch.setattr(
        "quadmatch.matcher.decode", lambda *given, **options: used.append(options) or decode(*given, **options)
    )
    settings = Settings(tmp_path, root=tiny / "data", say=lambda line: None)
    changed = replace(table.rows["untrained"], constraint=True, decoding={"weight": 0.3, "iterations": 2})
    reproduce_row(table, changed, None, settings)
    assert {(one["iterations"], one["weight"]) for one in used} == {(2, 0.3)}


def test_local_maps_are_used_as_the_row_says(tiny, table, tmp_path, monkeypatch) -> None:
    used = []
    monkeypatch.setattr(
        "quadmatch.matcher.sharpen", lambda start, *given, doubt, **options: used.append(doubt) or start
    )
    settings = Settings(tmp_path, root=tiny / "data", say=lambda line: None)
    reproduce_row(table, table.rows["untrained"], None, settings)
    assert used == []
    reproduce_row(table, replace(table.rows["untrained"], local_maps=0.2), None, settings)
    assert set(used) == {0.2}


def test_a_model_is_known_by_its_content_not_by_its_name(tiny, tmp_path) -> None:
    runs = [tmp_path / name / "run" for name in "abc"]
    for run, rate in zip(runs, (0.001, 0.01, 0.001)):
        changes = ["training.steps=2", f"training.learning_rate={rate}", "training.log_every=1"]
        fit(tiny_experiment(tiny, changes), run, say=lambda line: None, board=False)
    first, second, again = map(hash_model, runs)
    assert first == again != second
    assert hash_model("vgg16") != hash_model("default") != hash_model("qcdgm-voc")


def test_a_figure_is_a_function_and_a_line(invoke, tmp_path, monkeypatch) -> None:
    def make(settings):
        for number in settings.follow([1, 2], lambda number: f"point {number}"):
            assert number
        figure, axes = make_canvas(2.0, 2.0)
        axes.plot([1, 2])
        return Output("Two points", "made for a test", [["x", "y"], ["1", "2|3"]], {"y": [1, 2]}, figure)

    monkeypatch.setitem(ITEMS, "points", Figure("two points", make))
    done = invoke("points", "--out", tmp_path)
    assert done.exit_code == 0, done.output
    assert "2 of 2: point 2" in done.output
    assert {path.name for path in tmp_path.iterdir()} == {f"points.{kind}" for kind in ("json", "md", "png", "svg")}
    assert json.loads((tmp_path / "points.json").read_text())["y"] == [1, 2]
    text = (tmp_path / "points.md").read_text()
    assert "![Two points](points.png)" in text
    assert "| 1 | 2\\|3 |" in text
    printed = invoke("points", "--out", tmp_path, "--json", "-")
    assert json.loads(printed.stdout)["y"] == [1, 2]
    assert "2 of 2" in printed.stderr
    assert not invoke("points", "--out", tmp_path, "--json", "-", "--quiet").stderr
    assert "no row 'x'" in str(invoke("points", "--row", "x").exception)


def test_help_lists_what_there_is() -> None:
    shown = CliRunner().invoke(main, ["reproduce", "--help"], env={"COLUMNS": "200"}).output
    for name, item in ITEMS.items():
        assert f"{name}: {item.about}" in shown


def test_the_time_left_is_said(monkeypatch) -> None:
    now, said = iter([0.0, 600.0, 600.0, 600.0, 600.0, 1200.0]), []
    monkeypatch.setattr("quadmatch.reproduce.items.perf_counter", lambda: next(now))
    assert list(Settings(Path(), say=said.append).follow("abc", str.upper)) == ["a", "b", "c"]
    # The second step was reused, so only the first tells how long a step takes.
    assert said == [
        "1 of 3: A",
        "2 of 3: B (at most about 20 minutes left)",
        "3 of 3: C (at most about 10 minutes left)",
    ]


def test_a_row_is_trained_or_taken() -> None:
    for wrong in ({}, {"experiment": "a", "model": "b"}):
        with pytest.raises(ValueError, match="an experiment or a model"):
            Row(**wrong)


def test_a_table_of_more_methods_than_classes_has_a_line_a_method(monkeypatch, tmp_path) -> None:
    scores = {"accuracy": 50.0}
    result = {"classes": {"Car": scores, "Duck": scores}, "mean": scores, "dataset": "willow", "split": "test"}
    result |= {"protocol": "intersection", "pairs": 5, "pairs_hash": "0"}
    monkeypatch.setattr("quadmatch.reproduce.tables.reproduce_row", lambda *arguments, **options: result)
    settings = Settings(tmp_path, say=lambda line: None)
    rows = {name: Row("pca_willow", paper=name) for name in ("PCA", "GMN")}
    table = replace(ITEMS["willow"], compared=())
    few = make_table(replace(table, rows={"PCA": rows["PCA"]}), settings)
    many = make_table(replace(table, rows=rows), settings)
    assert (few.lines[0], few.totals) == (["class", "PCA, here", "PCA, paper"], 1)
    assert (many.lines[0], many.totals) == (["class", "Car", "Duck", "mean"], 0)
    assert ["GMN, paper", "72.9", "74.3", "76.2"] in many.lines


def test_every_row_that_names_one_of_the_papers_finds_it() -> None:
    for name, item in ITEMS.items():
        if isinstance(item, Table):
            missing = {row.paper for row in item.rows.values() if row.paper} - set(read_published(item.published)[1])
            assert not missing, name
    named = {row.paper for row in ITEMS["willow"].rows.values()}
    assert set(read_published("willow-accuracy")[1]) <= named


def test_comparisons_stay_with_the_rows_that_stay() -> None:
    def make(*rows: str, compared: tuple[str, ...]) -> dict[str, Any]:
        return {"rows": {row: {"mean": 1.0} for row in rows}, "compared": {name: {"gain": 0.0} for name in compared}}

    known = make("old name", "a", "b", "c", compared=("old name against a", "a against b", "b against c"))
    merged = keep_rows(make("new name", "a", compared=("new name against a",)), known, ["new name", "a", "b", "c"])
    assert list(merged["rows"]) == ["new name", "a", "b", "c"]
    assert merged["compared"].keys() == {"b against c", "new name against a"}


@pytest.mark.parametrize(
    ("name", "split", "quick", "stem"),
    [
        ("willow", None, False, "willow"),
        ("willow", "test", False, "willow"),
        ("willow", "validation", False, "willow-validation"),
        ("voc-reduced", "validation", True, "voc-reduced-quick"),
        ("outliers", "validation", True, "outliers-validation-quick"),
    ],
)
def test_figures_of_another_split_do_not_take_the_place_of_a_record(
    tmp_path: Path, name: str, split: str | None, quick: bool, stem: str
) -> None:
    assert name_files(name, ITEMS[name], Settings(tmp_path, split=split, quick=quick)) == stem


def test_a_record_of_before_metrics_were_written_is_one_of_accuracy() -> None:
    rows = {"rows": {"DGM": {"seeds": [{"pairs_hash": "a", "training_seed": 0}]}}}
    made = {**rows, "metric": "accuracy", "changes": []}
    assert are_alike(made, rows)
    assert not are_alike({**made, "metric": "f1"}, rows)
    assert not are_alike({**made, "changes": ["training.steps=5"]}, rows)
