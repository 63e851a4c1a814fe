"""Figures of the paper: what they show is what was computed."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from made_objects import make_objects
from tiny_experiment import tiny_experiment, write_experiment, write_tiny

from quadmatch.datasets.photo_pairs import PicturePair
from quadmatch.graph import Graph, GraphPair
from quadmatch.losses import false_matching
from quadmatch.matching import Matching
from quadmatch.reproduce import ITEMS, examples, inside, iterations, loss_surface, outliers
from quadmatch.reproduce.anatomy import Anatomy
from quadmatch.reproduce.figures import DRAWN, MEASURED
from quadmatch.reproduce.items import Figure, Output, Row, Settings
from quadmatch.reproduce.making import choose_item, reproduce_item, write_output
from quadmatch.result import MatchResult


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = write_tiny(tmp_path_factory.mktemp("tiny"))
    write_experiment(tiny_experiment(folder, ["training.steps=2"]), folder / "small.toml")
    return folder


@pytest.fixture
def settings(tiny, monkeypatch):
    monkeypatch.setenv("QUADMATCH_PRECISION", "float32,channels_last,1")
    monkeypatch.setenv("QUADMATCH_CACHE", str(tiny / "usual"))
    return Settings(tiny / "out", root=tiny / "data", say=lambda line: None)


def rows(tiny):
    experiment = str(tiny / "small.toml")
    return Row(experiment), Row(experiment, changes=("constraint=none",))


def test_every_figure_is_found_by_its_name() -> None:
    for name, item in (DRAWN | MEASURED).items():
        assert isinstance(ITEMS[name], Figure)
        module, maker = item.make.args
        assert callable(getattr(import_module(f"quadmatch.reproduce.{module}"), maker)), name


def test_what_a_figure_shows_can_be_chosen(tmp_path, monkeypatch) -> None:
    shown, nothing = [], Output("", "", [], {})
    monkeypatch.setattr(outliers, "make_outliers", lambda fields, settings: shown.append(fields) or nothing)
    monkeypatch.setattr(iterations, "make_iterations", lambda methods, *rest: shown.append(list(methods)) or nothing)
    monkeypatch.setattr("quadmatch.reproduce.making.write_output", lambda *given: None)
    for name, rows in (
        ("outliers", ["willow"]),
        ("outliers", None),
        ("beyond-outliers", None),
        ("iterations", ["GMN"]),
    ):
        reproduce_item(name, choose_item(name, rows), Settings(tmp_path))
    assert shown == [[outliers.WILLOW], [outliers.WILLOW, outliers.VOC], [outliers.SHIPPED], ["GMN"]]
    with pytest.raises(ValueError, match="it has willow, pascal-voc"):
        choose_item("outliers", ["coco"])


def test_false_matching_is_flat_between_wrong_corners_and_cross_entropy_sags() -> None:
    walks = loss_surface.measure_losses(loss_surface.walk_side())
    flat, sagging = walks["false matching"], walks["cross-entropy"]
    assert np.ptp(flat) < 1e-9
    assert sagging[1:-1].max() < min(sagging[0], sagging[-1]) - 1
    assert sagging[len(sagging) // 2] == sagging.min()


def test_the_surfaces_are_those_of_the_papers_formulas() -> None:
    places = np.array([[0.2, 0.3, 0.5], [0.6, 0.1, 0.3]])
    found = loss_surface.measure_losses(places)
    wrong, missing = places[:, 0] + places[:, 1], 1 - places[:, 2]
    assert np.allclose(found["false matching"], np.exp(2 * wrong) + np.exp(0.1 * missing))
    entropy = -np.log(1 - places[:, 0]) - np.log(1 - places[:, 1]) - np.log(places[:, 2])
    assert np.allclose(found["cross-entropy"], entropy)
    whole = loss_surface.list_places()
    assert np.allclose(whole.sum(1), 1)
    assert loss_surface.measure_losses(whole)["false matching"].max() < 9


def test_the_surface_is_written_as_text_numbers_and_pictures(tmp_path) -> None:
    output = loss_surface.make_figure(Settings(tmp_path))
    written = write_output("loss-surface", output, tmp_path)
    assert sorted(path.suffix for path in written) == [".json", ".md", ".png", ".svg"]
    kept = json.loads((tmp_path / "loss-surface.json").read_text())
    assert kept["at corners"]["false matching"][1] == kept["at corners"]["false matching"][2]


def test_outliers_are_counted_from_one_pass_of_each_kind(tiny, settings, monkeypatch) -> None:
    from quadmatch.features.extractor import FeatureExtractor

    seen = []
    extract = FeatureExtractor.extract
    monkeypatch.setattr(FeatureExtractor, "extract", lambda self, i, p: seen.append(len(i)) or extract(self, i, p))
    monkeypatch.setattr(outliers, "NUMBERS", (0, 1, 3))
    field = outliers.Field("Tiny", "willow", {"DGM": rows(tiny)}, split="validation", pairs=2)
    output = outliers.make_outliers((field,), settings)
    # Objects go through the network without outliers, and once with all of each kind.
    passed = sum(seen)
    again = outliers.make_outliers((field,), settings)
    assert sum(seen) == passed
    assert again.record["curves"] == output.record["curves"]
    curves = output.record["curves"]
    assert [(one["kind"], one["constraint"]) for one in curves] == [
        ("normal", True), ("uniform", True), ("normal", False), ("uniform", False)
    ]  # fmt: skip
    assert curves[0]["mean"][0] == curves[1]["mean"][0]
    assert all(0 <= value <= 100 for one in curves for value in one["mean"])
    panels = output.picture.axes
    assert [axes.get_title() for axes in panels] == [f"Tiny: {text}" for text in outliers.KINDS.values()]
    drawn = [line.get_ydata().tolist() for line in panels[0].get_lines()]
    assert np.allclose(drawn, [curves[0]["mean"], curves[2]["mean"]], atol=1e-3)
    assert [text.get_text() for text in output.picture.legends[0].get_texts()] == ["DGM +", "DGM −"]
    assert output.lines[0][1:] == ["0", "1", "3"]


def test_steps_are_counted_once_and_none_is_the_hungarian_match(tiny, settings, monkeypatch) -> None:
    output = iterations.make_iterations({"DGM": rows(tiny)}, "willow", "validation", 3, settings)
    (first, second) = output.record["rows"].values()
    assert len(first["accuracy"]) == len(iterations.STEPS)
    assert 0 <= first["taken"] <= iterations.STEPS[-1]
    assert first["model"] != second["model"]
    assert len(output.picture.axes) == 1
    monkeypatch.setattr(iterations, "_count_steps", None)
    again = iterations.make_iterations({"DGM": rows(tiny)}, "willow", "validation", 3, settings)
    assert again.record == output.record


def make_anatomy(nodes: int = 5) -> Anatomy:
    random = np.random.default_rng(0)
    order = random.permutation(nodes)
    points = random.uniform(5, 35, (2, nodes, 2))
    picture = np.zeros((40, 40, 3), np.uint8)
    pair = PicturePair("made/000", picture, points[0], picture, points[1], order)
    truth = np.eye(nodes)[order]
    soft = 0.7 * truth + 0.3 / nodes
    edges = 1 - np.eye(nodes)
    attributes = random.normal(size=(2, nodes, 30))
    return Anatomy(pair, tuple(attributes), (edges, edges), (edges, edges), soft, soft, soft, truth, truth)


@pytest.fixture
def anatomy(monkeypatch):
    made = make_anatomy()
    monkeypatch.setattr(inside, "look_inside", lambda settings: made)
    return made


def test_the_loss_that_is_drawn_is_the_packages_own(anatomy) -> None:
    output = inside.make_loss_flow(Settings(Path()))
    soft = torch.from_numpy(anatomy.constrained)[None]
    graph = Graph(torch.zeros(1, 5, 2), torch.ones(1, 5, dtype=torch.bool), torch.zeros(1, 5, 5))
    pair = GraphPair(graph, graph, torch.from_numpy(anatomy.truth)[None] > 0)
    loss = float(false_matching()(Matching(soft, soft, graph.adjacency, graph.adjacency), pair))
    assert output.record["loss"] == pytest.approx(loss)
    assert f"{loss:.3f}" in output.picture.get_suptitle()
    shown = [axes.images[0].get_array() for axes in output.picture.axes if axes.images]
    assert np.allclose(shown[2], anatomy.constrained * (1 - anatomy.truth))


def test_the_overview_shows_every_stage_and_counts_what_is_right(anatomy) -> None:
    output = inside.make_overview(Settings(Path()))
    titles = [axes.get_title() for axes in output.picture.axes]
    assert {"graph A", "graph B", "soft match", "constrained", "permutation"} <= set(titles)
    assert output.lines[-1] == ["permutation", "1.000", "5 of 5"]
    matrices = {axes.get_title(): axes for axes in output.picture.axes}
    assert len(matrices["permutation"].patches) == 5


def test_the_two_edges_are_the_most_and_the_least_similar(anatomy) -> None:
    output = inside.make_edge_kernel(Settings(Path()))
    rows = anatomy.attributes[0] / np.linalg.norm(anatomy.attributes[0], axis=1, keepdims=True)
    cosines = (rows @ rows.T)[np.triu_indices(5, 1)]
    said = [axes.get_title() for axes in output.picture.axes if axes.get_title().startswith("cos")]
    assert [text.partition(",")[0] for text in said] == [f"cos θ = {cosines.max():.2f}", f"cos θ = {cosines.min():.2f}"]


def match_made(pairs, wrong):
    """Results in which the first `wrong` points are matched in a circle."""
    results = []
    for pair in pairs:
        chosen = pair.truth.copy()
        chosen[:wrong] = np.roll(chosen[:wrong], 1)
        count = len(chosen)
        found = np.stack([np.arange(count), chosen], 1)
        edges = 1 - np.eye(count)
        results.append(MatchResult(found, np.ones(count), np.eye(count), 0.0, 1, True, edges, edges))
    return results


@pytest.fixture
def pairs(monkeypatch):
    made = [make_anatomy(nodes).pair for nodes in (6, 5, 4)]
    monkeypatch.setattr(examples, "list_photographs", lambda settings: made)
    monkeypatch.setattr(examples, "match_pairs", lambda pairs: (match_made(pairs, 0), match_made(pairs, 3)))
    return made


def test_examples_say_how_many_are_right(pairs) -> None:
    output = examples.show_photographs(Settings(Path(), say=lambda line: None))
    assert output.lines[1:] == [["made/000", "6", "6"]]
    assert [axes.get_title() for axes in output.picture.axes] == ["made: 6 of 6 right"]


def test_one_pair_is_shown_without_and_with_the_constraint(pairs) -> None:
    output = examples.compare_photographs(Settings(Path(), say=lambda line: None))
    assert output.lines[1:] == [
        ["without the constraint", "3 of 6", "6 of 15"], ["with the constraint", "6 of 6", "15 of 15"]
    ]  # fmt: skip
    pictures, matrices = output.picture.axes[::2], output.picture.axes[1::2]
    assert [axes.get_title() for axes in pictures] == [
        "without the constraint: 3 of 6 right", "with the constraint: 6 of 6 right"
    ]  # fmt: skip
    predicted = [axes.images[0].get_array() for axes in matrices]
    assert [int(np.trace(one[:, pairs[0].truth])) for one in predicted] == [3, 6]


def test_objects_of_a_data_set_become_a_pair_with_the_keypoints_of_both() -> None:
    first, second = (replace(one, image=lambda: np.zeros((70, 90, 3), np.uint8)) for one in make_objects(2, least=6))
    pair = examples.pair_objects(first, second)
    common = sorted(set(first.names) & set(second.names))
    assert len(pair.truth) == len(common)
    for place, name in enumerate(common):
        corners = [np.maximum(np.round(one.box[:2]) if one.box else 0, 0) for one in (first, second)]
        here = first.points[first.names.index(name)] - corners[0]
        there = second.points[second.names.index(name)] - corners[1]
        assert np.allclose(pair.points_a[place], here)
        assert np.allclose(pair.points_b[pair.truth[place]], there)
