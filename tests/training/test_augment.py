from __future__ import annotations

from pathlib import Path

import pytest
import torch
from random_pairs import random_pair
from same_runs import assert_same
from tiny_experiment import tiny_experiment, write_tiny

from quadmatch.datasets.gathering import ALONE
from quadmatch.delaunay import delaunay
from quadmatch.experiments.build import build_matcher
from quadmatch.experiments.reading import ExperimentError
from quadmatch.experiments.training_schema import AugmentationSection
from quadmatch.features.prepared import Stored
from quadmatch.graph import Graph, GraphPair, PairBatch, collate
from quadmatch.models.runs import create_run
from quadmatch.training.augment import AUGMENTATIONS, build_augmentations
from quadmatch.training.fit import build_trainer, fit, resume
from quadmatch.training.sampling import PLACES
from quadmatch.training.trainer import Trainer

NOTHING = Stored({}, [])


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("tiny"))


def make_batch(*sizes: tuple[int, int]) -> PairBatch:
    pairs = collate([random_pair(n, m, seed, dtype=torch.float32)[0] for seed, (n, m) in enumerate(sizes)])
    nodes = [torch.arange(one.mask.shape[1]).where(one.mask, -1) for one in (pairs.source, pairs.target)]
    return PairBatch(pairs, torch.arange(len(sizes)), torch.arange(len(sizes)), *nodes)


def augment(name: str, strength: float, batch: PairBatch, seed: int = 0) -> PairBatch:
    change = AUGMENTATIONS[name](strength, "delaunay")
    return change(NOTHING, batch, torch.Generator().manual_seed(seed))[1]


def list_graphs(batch: PairBatch):
    for graph in (batch.pairs.source, batch.pairs.target):
        yield from zip(graph.points, graph.mask, graph.adjacency)


def test_every_name_is_a_key_of_an_experiment(tiny) -> None:
    assert AugmentationSection.model_fields.keys() == AUGMENTATIONS.keys()
    assert build_augmentations(tiny_experiment(tiny)) == []
    assert len(build_augmentations(tiny_experiment(tiny, ["training.augmentation.jitter=2"]))) == 1
    with pytest.raises(ExperimentError, match=r"training\.augmentation\.jiter: unknown key; is 'jitter' meant"):
        tiny_experiment(tiny, ["training.augmentation.jiter=2"])
    with pytest.raises(ExperimentError, match=r"training\.augmentation\.dropout: "):
        tiny_experiment(tiny, ["training.augmentation.dropout=2"])


@pytest.mark.parametrize("name", [name for name in AUGMENTATIONS if name != "features"])
def test_what_comes_out_is_a_batch_and_a_function_of_the_generator(name: str) -> None:
    batch = make_batch((8, 8), (5, 7), (2, 3), (9, 4))
    first, again, other = (augment(name, 0.5, batch, seed) for seed in (3, 3, 4))
    for points, mask, adjacency in list_graphs(first):
        assert (points[~mask] == 0).all()
        assert torch.equal(adjacency[mask][:, mask], delaunay(points[mask]))
        assert adjacency.sum() == adjacency[mask][:, mask].sum()
    assert not (first.pairs.truth & ~first.pairs.mask).any()
    assert torch.equal(first.pairs.source.points, again.pairs.source.points)
    assert torch.equal(first.target_nodes, again.target_nodes)
    assert not torch.equal(first.pairs.source.points, other.pairs.source.points)


def test_jitter_moves_points_by_so_many_pixels_and_leaves_the_truth() -> None:
    batch = make_batch(*[(20, 20)] * 50)
    moved = augment("jitter", 3.0, batch)
    distance = moved.pairs.target.points - batch.pairs.target.points
    assert distance.std().item() == pytest.approx(3.0, rel=0.1)
    assert abs(distance.mean().item()) < 0.3
    assert torch.equal(moved.pairs.truth, batch.pairs.truth)
    assert torch.equal(moved.source_nodes, batch.source_nodes)


def test_dropout_takes_partners_together_and_leaves_three() -> None:
    batch = make_batch(*[(20, 24)] * 50)
    left = augment("dropout", 0.25, batch)
    share = left.pairs.source.mask.float().mean().item()
    assert share == pytest.approx(0.75, abs=0.05)
    for before, after in (
        (batch.pairs.truth.any(2), left.pairs.truth.any(2)),
        (batch.pairs.truth.any(1), left.pairs.truth.any(1)),
    ):
        mask = left.pairs.source.mask if before.shape[1] == 20 else left.pairs.target.mask
        assert torch.equal(after, before & mask)  # Who had a partner and stays has it still.
    assert torch.equal(left.source_nodes >= 0, left.pairs.source.mask)
    assert torch.equal(left.target_nodes >= 0, left.pairs.target.mask)
    few = augment("dropout", 1.0, batch)
    assert (few.pairs.truth.sum((1, 2)) == 3).all()
    assert (few.pairs.source.mask.sum(1) == 3).all()
    tiny_graphs = augment("dropout", 1.0, make_batch((2, 2), (1, 5)))
    assert tiny_graphs.pairs.truth.sum((1, 2)).tolist() == [2, 1]


def test_articulation_turns_one_side_of_a_line_about_a_keypoint_and_keeps_all_distances_on_either_side() -> None:
    batch = make_batch(*[(20, 20)] * 50)
    turned = augment("articulation", 0.5, batch)
    angles = []
    for before, after in zip(batch.pairs.source.points, turned.pairs.source.points):
        moved = (after - before).norm(dim=1) > 1e-3
        for side in (moved, ~moved):
            assert torch.allclose(
                torch.cdist(after[side], after[side]), torch.cdist(before[side], before[side]), atol=0.1
            )
        if moved.sum() > 1:
            first, second = ((one[moved][1:] - one[moved][0]) for one in (before, after))
            cross = first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]
            angle = torch.atan2(cross, (first * second).sum(1))
            assert torch.allclose(angle, angle[:1].expand_as(angle), atol=0.02)
            angles.append(angle[0])
            # The joint is a keypoint that stays, at the same distance from all that turn as before.
            same = (torch.cdist(after[~moved], after[moved]) - torch.cdist(before[~moved], before[moved])).abs()
            assert (same.amax(1) < 0.1).any()
    assert len(angles) > 40
    assert torch.stack(angles).std().item() == pytest.approx(0.5, rel=0.3)
    assert torch.equal(turned.pairs.truth, batch.pairs.truth)
    assert torch.equal(turned.source_nodes, batch.source_nodes)


def test_image_features_are_left_out_each_by_itself_and_keep_their_mean() -> None:
    batch, stored = make_batch((5, 5)), Stored({"a": torch.ones(40, 500)}, [20, 20])
    change = AUGMENTATIONS["features"](0.75, "delaunay")
    (thin, same), (again, _) = (change(stored, batch, torch.Generator().manual_seed(1)) for _ in range(2))
    assert thin.arrays["a"].unique().tolist() == [0, 4]
    assert thin.arrays["a"].mean().item() == pytest.approx(1, abs=0.05)
    assert thin.arrays["a"].mean(1).std().item() < 0.2  # No object and no keypoint loses all of them.
    assert torch.equal(thin.arrays["a"], again.arrays["a"])
    assert (same, thin.counts) == (batch, [20, 20])


def test_a_head_sees_a_graph_without_the_keypoints_that_were_left_out(tiny) -> None:
    pair, *features = random_pair(9, 9, dtype=torch.float32, channels=1024)
    nodes, first = torch.arange(9)[None], torch.zeros(1, dtype=torch.long)
    left = augment("dropout", 0.4, PairBatch(pair, first, first, nodes, nodes))
    kept = [graph.mask[0] for graph in (left.pairs.source, left.pairs.target)]
    assert 3 <= kept[0].sum() < 9
    head = build_matcher(tiny_experiment(tiny)).head.eval()
    places = left.source_nodes, left.target_nodes
    chosen = [one.select(first, place) for one, place in zip(features, places)]
    found = head(left.pairs, *chosen).assignment
    small = [
        Graph(graph.points[:, keep], graph.mask[:, keep], graph.adjacency[:, keep][:, :, keep])
        for graph, keep in zip((left.pairs.source, left.pairs.target), kept)
    ]
    packed = [one.select(first, nodes[:, keep]) for one, keep in zip(features, kept)]
    rows, columns = kept
    alone = head(GraphPair(*small, left.pairs.truth[:, rows][:, :, columns]), *packed).assignment
    assert torch.allclose(found[:, rows][:, :, columns], alone, atol=1e-5)
    assert found[:, ~rows].abs().sum() == found[:, :, ~columns].abs().sum() == 0


def test_an_augmented_run_goes_on_bit_for_bit(tiny, tmp_path, monkeypatch) -> None:
    changes = ["training.steps=4", "training.checkpoint_steps=1"]
    plain = tiny_experiment(tiny, changes)
    changes += ["training.augmentation.jitter=1", "training.augmentation.dropout=0.3"]
    experiment = tiny_experiment(tiny, changes)
    fit(experiment, tmp_path / "whole", say=lambda line: None, board=False)
    take_step = Trainer.take_step

    def interrupt(self: Trainer, step: int) -> dict[str, float]:
        if step == 2:
            raise KeyboardInterrupt
        return take_step(self, step)

    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "take_step", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fit(experiment, tmp_path / "stopped", say=lambda line: None, board=False)
    resume(tmp_path / "stopped", say=lambda line: None, board=False)
    assert_same(tmp_path / "stopped", tmp_path / "whole")
    losses = [
        build_trainer(create_run(tmp_path / name, one, "float32", 1), lambda line: None).take_step(0)["loss"]
        for name, one in (("plain", plain), ("augmented", experiment))
    ]
    assert losses[0] != losses[1]


def test_affine_is_one_linear_map_a_graph_about_its_centre() -> None:
    batch = make_batch((6, 5), (4, 7))
    moved = augment("affine", 0.2, batch)
    for before, after in zip((batch.pairs.source, batch.pairs.target), (moved.pairs.source, moved.pairs.target)):
        for row, size in enumerate(before.sizes.tolist()):
            old, new = before.points[row, :size].double(), after.points[row, :size].double()
            torch.testing.assert_close(old.mean(0), new.mean(0), atol=1e-3, rtol=0)
            offsets = old - old.mean(0)
            linear = torch.linalg.lstsq(offsets, new - new.mean(0)).solution
            torch.testing.assert_close(offsets @ linear, new - new.mean(0), atol=1e-3, rtol=0)
            assert not torch.allclose(linear, torch.eye(2, dtype=linear.dtype), atol=0.01)
            assert torch.equal(after.adjacency[row, :size, :size], delaunay(after.points[row, :size]))
            assert not after.points[row, size:].any()


def test_some_steps_see_all_keypoints_and_strangers(tiny) -> None:
    changes = ["training.unfiltered=0.5", "training.strangers=3", "training.classes=2", "training.objects=2"]
    experiment = tiny_experiment(tiny, changes)
    run = create_run(tiny / "strangers", experiment, experiment.features.precision, 1)
    sampler = build_trainer(run, lambda line: None).sampler
    alone = [int((~batch.pairs.truth.any((1, 2))).sum()) for _, batch in map(sampler.sample, range(12))]
    assert set(alone) == {0, 3}
    assert 2 <= alone.count(3) <= 10


def test_half_of_the_steps_have_points_that_match_nothing(tiny) -> None:
    changes = ["training.outliers=4", "training.classes=2", "training.objects=2"]
    experiment = tiny_experiment(tiny, changes)
    run = create_run(tiny / "outliers", experiment, experiment.features.precision, 1)
    sampler = build_trainer(run, lambda line: None).sampler
    plain = build_trainer(
        create_run(tiny / "plain", tiny_experiment(tiny, changes[1:]), experiment.features.precision, 1),
        lambda line: None,
    ).sampler
    numbers = []
    for step in range(40):
        (stored, batch), (_, before) = sampler.sample(step), plain.sample(step)
        extra = [set((one.sizes - other.sizes).tolist()) for one, other in zip(_sides(batch), _sides(before))]
        assert extra[0] == extra[1]
        assert len(extra[0]) == 1  # Every object of a step has as many.
        assert torch.equal(batch.pairs.truth.sum((1, 2)), before.pairs.truth.sum((1, 2)))
        assert int(batch.source_nodes.max()) < max(stored.counts)  # They have features as well.
        numbers.append(extra[0].pop())
    assert 10 < numbers.count(0) < 30
    assert {number for number in numbers if number} == {1, 2, 3, 4}
    places = (sampler.table.identity == ALONE).sum(1)
    assert (places == PLACES * 4).all()  # More than a step has: which ones, changes from step to step.


def test_another_seed_has_other_places_for_points_that_match_nothing(tiny) -> None:
    def place(seed: int) -> list[list[float]]:
        experiment = tiny_experiment(tiny, ["training.outliers=4", f"training.seed={seed}"])
        run = create_run(tiny / f"places{seed}{len(list(tiny.glob('places*')))}", experiment, "float32,contiguous,1", 1)
        table = build_trainer(run, lambda line: None).sampler.table
        return table.points[table.identity == ALONE].tolist()

    first, again, other = place(0), place(0), place(1)
    assert first == again
    assert len(first) == len(other)
    assert not {tuple(one) for one in first} & {tuple(one) for one in other}


def test_some_steps_see_views_of_one_object(tiny) -> None:
    changes = ["training.views=0.5", "training.view_objects=30", "training.classes=2", "training.objects=2"]
    changes += ["training.outliers=2", "training.unfiltered=0.5", "training.strangers=1"]
    experiment = tiny_experiment(tiny, changes)
    run = create_run(tiny / "views", experiment, experiment.features.precision, 1)
    sampler = build_trainer(run, lambda line: None).sampler
    assert len(sampler.groups) == 5  # Views are no categories that other steps draw.
    assert sampler.views
    assert all(group.category.startswith("view/") for group in sampler.views)
    assert (sampler.table.identity == ALONE).any(1).all()  # They have places for outliers too.
    first = min(int(group.indices.min()) for group in sampler.views)
    names = {name: index for index, name in enumerate(sampler.names)}
    seen = []
    sampler.store.get = lambda name, get=sampler.store.get: seen.append(names[name]) or get(name)
    numbers = []
    for step in range(30):
        seen.clear()
        _, batch = sampler.sample(step)
        assert int((~batch.pairs.truth.any((1, 2))).sum()) <= 1  # A pair of strangers, in some steps.
        kinds = {index >= first for index in seen}
        assert len(kinds) == 1  # Views or objects, not both.
        numbers.append(kinds.pop())
    assert 8 < sum(numbers) < 22


def _sides(batch: PairBatch) -> tuple[Graph, Graph]:
    return batch.pairs.source, batch.pairs.target
