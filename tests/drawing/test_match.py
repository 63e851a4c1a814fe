import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest
import torch
from matplotlib.collections import LineCollection, PathCollection
from PIL import Image

from quadmatch.delaunay import delaunay
from quadmatch.drawing.canvas import make_figure, save_figure
from quadmatch.drawing.labels import place_labels
from quadmatch.drawing.layout import align, lay_out
from quadmatch.drawing.marks import make_scale
from quadmatch.drawing.match import draw_match, judge
from quadmatch.drawing.matrices import draw_assignment, read_truth
from quadmatch.drawing.panels import LARGEST
from quadmatch.graphs.match_graphs import match_graphs
from quadmatch.result import MatchResult


def _match(n=12, seed=0, **options):
    rng = np.random.default_rng(seed)
    points, order = rng.random((n, 2)), rng.permutation(n)
    moved = points[order] + rng.normal(0, 0.005, points.shape)
    a, b = (delaunay(torch.from_numpy(one)).numpy() for one in (points, moved))
    return match_graphs(a, b, **options), points, moved, np.argsort(order)


def _lines(figure):
    """Segments of every collection of lines that runs from one panel to the other."""
    collections = [one for one in figure.axes[0].collections if hasattr(one, "get_segments")]
    return [one for one in collections if any(s[0, 0] <= 1 < s[1, 0] for s in one.get_segments())]


def test_a_match_is_drawn_with_right_and_wrong_apart():
    result, points, moved, truth = _match()
    wrong = truth.copy()
    wrong[:2] = wrong[[1, 0]]
    figure = draw_match(result, points, moved, truth=wrong)
    assert sum(len(one.get_segments()) for one in _lines(figure)) == 12
    assert figure.axes[0].get_title() == "10 of 12 pairs right (83 %)"
    assert len(set(map(tuple, _lines(figure)[0].get_colors()))) == 2
    scored = draw_match(result, points, moved, title="by score")
    weakest_last = np.argsort(-result.scores, kind="stable")
    assert np.allclose(_lines(scored)[0].get_colors(), make_scale()(result.scores[weakest_last]))
    assert scored.axes[0].get_title() == "by score"


def _colours(figure):
    """Colours of lines, and of points but for hollow ones, each with how often it occurs."""
    dots = [one.get_facecolors() for one in figure.axes[0].collections if isinstance(one, PathCollection)]
    dots = np.concatenate([rows[~(rows == 1).all(1)] for rows in dots if len(rows)])
    lines = np.concatenate([one.get_colors() for one in _lines(figure)])
    return (sorted(map(tuple, rows.round(4).tolist())) for rows in (lines, dots))


@pytest.mark.parametrize("judged", [True, False])
def test_points_and_lines_share_one_colour_code_that_a_legend_explains(judged):
    result, points, moved, truth = _match(partial=True)
    alone = replace(result, pairs=result.pairs[:10], scores=np.linspace(0.1, 1, 10))
    truth[:3] = -1
    figure = draw_match(alone, points, moved, truth=truth if judged else None)
    lines, dots = _colours(figure)
    assert dots == sorted([*lines, *lines])
    words = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert words == (["right", "wrong", "left alone"] if judged else ["left alone"])
    assert [axes.get_ylabel() for axes in figure.axes[1:]] == ([] if judged else ["score"])


def _labels(figure):
    return list(figure.axes[0].texts)


def test_points_are_labelled_by_number_or_name_up_to_sixty():
    result, points, moved, _ = _match()
    numbers = [str(number) for number in range(12)]
    assert [one.get_text() for one in _labels(draw_match(result, points, moved))] == [*numbers, *numbers]
    named = draw_match(result, points, moved, names_a=[f"ear {number}" for number in numbers])
    assert [one.get_text() for one in _labels(named)] == [*(f"ear {number}" for number in numbers), *numbers]
    assert not _labels(draw_match(result, points, moved, labels=False))
    many = MatchResult(np.zeros((0, 2), int), np.zeros(0), np.zeros((61, 3)), 0.0, 1, True)
    assert [one.get_text() for one in _labels(draw_match(many))] == ["0", "1", "2"]
    with pytest.raises(ValueError, match="names_b must name 12 nodes, got 2 names"):
        draw_match(result, points, moved, names_b=["a", "b"])


def test_labels_cover_neither_points_nor_each_other():
    points = np.stack(np.meshgrid(np.arange(0, 200, 30.0), np.arange(0, 150, 30.0)), -1).reshape(-1, 2)
    centres = place_labels(points, [str(number) for number in range(len(points))], 4.0)
    halves = np.array([3.0, 3.5])
    assert ((np.abs(centres[:, None] - points) > halves + 2.5).any(-1)).all()
    apart = (np.abs(centres[:, None] - centres) > 2 * halves).any(-1)
    assert apart[~np.eye(len(points), dtype=bool)].all()
    near = np.linalg.norm(centres - points, axis=1)
    assert near.max() < 20


@pytest.mark.parametrize("shade", [0, 255])
def test_edges_are_seen_on_a_picture_as_dark_and_as_light_as_can_be(shade):
    graph = 1 - np.eye(3)
    bare = MatchResult(np.zeros((0, 2), int), np.zeros(0), np.zeros((3, 3)), 0.0, 1, True, graph, graph)
    picture = np.full((60, 80, 3), shade, np.uint8)
    points = np.array([[10.0, 10], [70, 12], [40, 50]])
    drawn = []
    for edges in (True, False):
        figure = draw_match(bare, points, points, image_a=picture, image_b=picture, edges=edges, title="")
        figure.canvas.draw()
        drawn.append(np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(int))
    changed = np.abs(drawn[0] - drawn[1]).max(-1)
    assert (changed > 60).sum() > 300


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_pictures_are_written_whole_and_alike(tmp_path, kind):
    result, points, moved, _ = _match()
    first, second = (tmp_path / "in" / f"{name}.{kind}" for name in ("one", "two"))
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        result.plot(points, moved, path=first)
    first.parent.mkdir()
    result.plot(points, moved, path=first)
    figure = result.plot(points, moved, path=second)
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[kind]
    assert first.read_bytes().startswith(start)
    assert sorted(path.name for path in first.parent.iterdir()) == [first.name, second.name]
    if kind == "svg":
        ElementTree.fromstring(first.read_text())
    if kind == "png":
        assert first.read_bytes() == second.read_bytes()
    with pytest.raises(ValueError, match=r"must end in \.png, \.svg or \.pdf"):
        save_figure(figure, tmp_path / "picture.bmp")


def test_any_result_can_be_drawn():
    none = match_graphs(np.zeros((0, 0)), np.zeros((2, 2)))
    partial = match_graphs(np.zeros((3, 3)), np.ones((4, 4)) - np.eye(4), partial=True)
    soft = match_graphs(torch.ones(4, 4).fill_diagonal_(0), torch.ones(3, 3).fill_diagonal_(0), method="frank_wolfe")
    bare = MatchResult(np.array([[0, 1]]), np.array([0.5]), np.eye(2), 0.0, 1, True)
    for result in (none, partial, soft, bare):
        assert draw_match(result).axes
        assert draw_assignment(result).axes
    image = np.zeros((20, 30, 3), dtype=np.uint8)
    points = np.array([[1.0, 2], [20, 10]])
    assert len(draw_match(bare, points, points, image_a=image, image_b=image[..., 0]).axes[0].images) == 2


def test_pictures_lie_below_their_points(tmp_path):
    graphs = np.ones((2, 2)), np.ones((2, 2))
    bare = MatchResult(np.array([[0, 1], [1, 0]]), np.array([0.5, 0.9]), np.eye(2), 0.0, 1, True, *graphs)
    tall, wide = np.zeros((4000, 100, 3), np.uint8), np.zeros((30, 3000), np.uint8)
    Image.fromarray(tall).save(tmp_path / "tall ö.png")
    ends = np.array([[0.0, 0.0], [100, 4000]]), np.array([[0.0, 0.0], [3000, 30]])
    figure = draw_match(bare, *ends, image_a=tmp_path / "tall ö.png", image_b=Image.fromarray(wide))
    axes = figure.axes[0]
    places = np.concatenate([one.get_offsets() for one in axes.collections if isinstance(one, PathCollection)])
    for image, (low, high) in zip(axes.images, (sorted(own.tolist()) for own in (places[:2], places[2:]))):
        left, right, bottom, top = image.get_extent()
        assert np.allclose([low, high], [[left, top], [right, bottom]])
        assert max(image.get_array().shape) <= LARGEST
    assert axes.images[0].get_extent()[1] < axes.images[1].get_extent()[0]
    assert axes.get_title() == "2 pairs of 2 and 2 keypoints"
    drawn = [draw_match(bare, *ends, edges=shown).axes[0].collections for shown in (True, False)]
    lines = [sum(isinstance(one, LineCollection) for one in collections) for collections in drawn]
    assert lines[0] == lines[1] + 2
    with pytest.raises(FileNotFoundError, match="image_b"):
        draw_match(bare, *ends, image_a=tall, image_b=tmp_path / "none.png")


def test_points_and_truth_of_the_wrong_shape_are_named():
    result, points, moved, truth = _match()
    with pytest.raises(ValueError, match=r"points_a must be 12 finite"):
        draw_match(result, points[:5], moved)
    with pytest.raises(ValueError, match=r"points_b must be 12 finite"):
        draw_match(result, points, moved * np.nan)
    with pytest.raises(ValueError, match=r"truth must have shape \[12, 12\] or \[12\]"):
        draw_assignment(result, truth=truth[:5])
    with pytest.raises(ValueError, match="target nodes from 0 to 11"):
        read_truth(truth + 1, 12, 12)


def test_truth_may_be_a_matrix_or_partners():
    pairs = np.array([[0, 1], [1, 0], [2, 2]])
    partners = np.array([1, 2, -1])
    assert judge(pairs, partners).tolist() == [True, False, False]
    assert judge(pairs, read_truth(partners, 3, 3)).tolist() == [True, False, False]
    assert judge(pairs, torch.from_numpy(read_truth(partners, 3, 3))).tolist() == [True, False, False]


def test_layouts_show_distances_and_align():
    path = np.diag(np.ones(5), 1)
    points = lay_out(path)
    steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
    assert steps.std() / steps.mean() < 0.1
    assert np.linalg.norm(points[0] - points[5]) > 4.5 * steps.mean()
    turn = np.array([[0.0, -1], [1, 0]])
    pairs = np.stack((np.arange(6), np.arange(6)), 1)
    assert np.allclose(align(3 * points @ turn + 7, points, pairs), points)
    assert lay_out(np.zeros((0, 0))).shape == (0, 2)
    assert np.isfinite(lay_out(np.zeros((5, 5)))).all()
    assert lay_out(np.zeros((1, 1))).shape == (1, 2)


def test_results_speak_json_text_and_html():
    result, *_ = _match(n=25, partial=True)
    written = json.loads(json.dumps(result.to_json(assignment=True), allow_nan=False))
    assert written["pairs"] == result.pairs.tolist()
    assert written["nodes"] == [25, 25]
    assert np.array_equal(np.array(written["assignment"]), result.assignment)
    assert "assignment" not in result.to_json()
    assert f"{len(result)} pairs of 25 and 25 nodes" in repr(result)
    page = result._repr_html_()
    ElementTree.fromstring(f"<div>{page}</div>")
    assert page.count("<tr>") == 21
    soft = match_graphs(torch.ones(3, 3).fill_diagonal_(0).requires_grad_(), np.zeros((3, 3)), method="frank_wolfe")
    assert isinstance(soft.to_json()["objective"], float)
    assert "3 pairs" in repr(soft)


def _shapes(figure):
    """How many points are drawn in each shape, by the number of corners of its outline."""
    dots = [one for one in figure.axes[0].collections if isinstance(one, PathCollection)]
    return {len(one.get_paths()[0].vertices): len(one.get_offsets()) for one in dots}


def test_wrong_pairs_differ_in_shape_and_dash_not_in_colour_alone():
    result, points, moved, truth = _match()
    wrong = truth.copy()
    wrong[:2] = wrong[[1, 0]]
    figure = draw_match(result, points, moved, truth=wrong)
    assert sorted(_shapes(figure).values()) == [2, 10]
    dashes = _lines(figure)[0].get_linestyles()
    assert [dash is not None for _, dash in dashes].count(True) == 2
    whole = draw_match(result, points, moved, truth=truth)
    assert len(_shapes(whole)) == 1
    assert all(dash is None for _, dash in _lines(whole)[0].get_linestyles())


def test_pairs_have_a_colour_and_a_number_of_their_own():
    result, points, moved, truth = _match(n=6)
    figure = draw_match(result, points, moved, truth=truth, by="pair")
    assert not _lines(figure)
    names = [one.get_text() for one in _labels(figure)]
    for source, target in result.pairs:
        assert names[source] == names[6 + target] != ""
    paint = np.concatenate([one.get_facecolors() for one in figure.axes[0].collections if len(one.get_offsets()) == 6])
    assert len({tuple(row) for row in paint.round(4)}) == 6
    with pytest.raises(ValueError, match="by must be"):
        draw_match(result, points, moved, by="truth")


def test_a_match_is_drawn_on_a_part_of_a_figure():
    result, points, moved, _ = _match()
    whole = make_figure(8.0, 3.0)
    left, right = whole.subfigures(1, 2)
    draw_match(result, points, moved, figure=left)
    draw_match(result, points, moved, figure=right, by="pair")
    assert [len(part.axes[0].collections) > 1 for part in (left, right)] == [True, True]
