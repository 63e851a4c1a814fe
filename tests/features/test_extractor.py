"""Features: the levels against each other and against dense maps, and the store in between."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn.functional import normalize
from vgg_scene import SIZE, make_state

from quadmatch.bench.throughput import measure_extractor
from quadmatch.datasets.annotation import Annotation, load_crop
from quadmatch.features.cache import FeatureStore
from quadmatch.features.levels import EXTRACTORS, build_extractor
from quadmatch.features.store_features import fill_store, name_entry, read_features
from quadmatch.features.vgg import STRIDES


def build(level, state, **options):
    return build_extractor(level, weights=state, precision="float32,channels_last,1", size=SIZE, **options)


def test_local_equals_dense_at_the_centres_of_cells(state, maps, scene):
    """There interpolation does nothing, so that its place among the convolutions does not matter."""
    columns, rows = torch.meshgrid(torch.arange(6), torch.arange(6), indexing="ij")
    extractor = build("local", state)
    for layer, part in (("relu4_2", "local"), ("relu5_1", "edge")):
        stride = STRIDES[layer]
        inner = [
            (c, r)
            for c, r in zip(columns.flatten(), rows.flatten())
            if 1 <= c < SIZE // stride - 1 and 1 <= r < SIZE // stride - 1
        ]
        cells = torch.tensor(inner, dtype=torch.float32)
        features = extractor.compute(scene[0], [(cells + 0.5) * stride] * 3)
        expected = torch.stack([normalize(maps[layer], dim=1)[:, :, r, c] for c, r in inner], dim=1)
        torch.testing.assert_close(getattr(features, part), expected, atol=2e-3, rtol=0)  # Kept in float16.


def test_frozen_late_and_full_agree_and_local_is_near(state, scene):
    features = {level: build(level, state).compute(*scene) for level in EXTRACTORS}
    for level, other in features.items():
        assert other.local.shape == other.edge.shape == (3, 7, 512)
        assert not other.local[1].any()  # Zero on padding.
        assert not other.edge[0, 4:].any()
        torch.testing.assert_close(other.whole.norm(dim=-1), torch.ones(3), atol=1e-3, rtol=0)
        assert other.local.requires_grad == (level in ("local", "full"))
        assert other.edge.requires_grad == (level != "frozen")
    frozen, local, late, full = (features[level] for level in ("frozen", "local", "late", "full"))
    for part in ("local", "edge", "whole"):
        for dense in (late, full):
            torch.testing.assert_close(getattr(frozen, part), getattr(dense, part), atol=2e-3, rtol=0)
        similar = torch.cosine_similarity(getattr(frozen, part), getattr(local, part), dim=-1)
        assert similar[similar > 0].min() > 0.8


@pytest.mark.parametrize("level", EXTRACTORS)
def test_batch_mates_change_nothing(level, state, scene):
    extractor = build(level, state)
    together = extractor.compute(*scene)
    for index, own in enumerate(scene[1]):
        alone = extractor.compute(scene[0][index : index + 1], [own])
        assert alone.local.shape[1] == len(own)
        for part in ("local", "edge"):
            expected = getattr(together, part)[index : index + 1, : len(own)]
            torch.testing.assert_close(getattr(alone, part), expected, atol=2e-3, rtol=0)


@pytest.mark.parametrize("level", ["local", "late", "full"])
def test_gradient_reaches_every_weight_and_only_changes_are_saved(level, state, scene):
    extractor = build(level, state)
    assert extractor.trained_state() == {}
    features = extractor.compute(*scene)
    (features.local.sum() + features.edge.sum()).backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in extractor.parameters())
    with torch.no_grad():
        extractor.network.get_submodule("features.24").bias.add_(1)
    saved = extractor.trained_state()
    assert list(saved) == ["features.24.bias"]
    other = build(level, state)
    other.load_trained(saved)
    torch.testing.assert_close(other.compute(*scene).edge, extractor.compute(*scene).edge)
    assert not torch.allclose(other.compute(*scene).edge, features.edge, atol=1e-2)
    other.load_trained({})
    assert other.trained_state() == {}
    with pytest.raises(ValueError, match=r"features\.99\.bias"):
        other.load_trained({"features.99.bias": torch.zeros(1)})
    with pytest.raises(ValueError, match=r"features\.24\.bias.*\(3,\)"):
        other.load_trained({"features.24.bias": torch.zeros(3)})


def test_the_last_block_and_what_is_before_it_are_read_as_in_the_frozen_network(state, scene):
    layers = ("relu5_1", "relu3_3", "relu4_2", "pool4", "relu5_3")
    frozen, late = (build(level, state, layers=layers).compute(*scene) for level in ("frozen", "late"))
    assert list(late.maps) == list(layers)
    for layer in layers:
        torch.testing.assert_close(late.maps[layer], frozen.maps[layer], atol=2e-3, rtol=0)
        assert late.maps[layer].requires_grad == layer.startswith("relu5")


def test_nothing_of_the_frozen_network_is_trained_or_saved(state):
    extractor = build("frozen", state)
    assert not list(extractor.parameters())
    assert not extractor.state_dict()
    assert {key.partition(".")[2] for key in build("local", state).state_dict()} == {
        f"features.{position}.{kind}" for position in (17, 19, 24) for kind in ("weight", "bias")
    }


def test_batch_norm_at_every_level(scene):
    state = make_state(batch_norm=True)
    frozen, full = build("frozen", state).compute(*scene), build("full", state).eval().compute(*scene)
    torch.testing.assert_close(frozen.edge, full.edge, atol=2e-3, rtol=0)
    assert build("local", state).compute(*scene).local.shape == frozen.local.shape
    training = build("full", state).train()
    training.compute(*scene)
    assert {key.rsplit(".")[-1] for key in training.trained_state()} == {
        "running_mean", "running_var", "num_batches_tracked",
    }  # fmt: skip


def test_store_keys_follow_what_is_kept(state):
    keys = {build(level, state).key for level in EXTRACTORS}
    other = state | {"features.0.bias": state["features.0.bias"] + 1}
    keys |= {build("local", other).key, build_extractor("local", weights=state, precision="bfloat16", size=SIZE).key}
    keys |= {build_extractor("local", weights=state, precision="float32", size=SIZE + 16).key}
    assert len(keys) == 7
    assert build("full", state).key == build("full", other).key  # Pixels do not depend on weights.
    trained = build("local", state)
    trained.load_trained({"features.19.bias": torch.ones(512)})
    assert trained.key == build("local", state).key


def make_annotations(tmp_path):
    from PIL import Image

    generator = np.random.default_rng(0)
    annotations = []
    for number in range(3):
        Image.fromarray(generator.integers(0, 256, (60, 80, 3), dtype=np.uint8)).save(tmp_path / f"{number}.png")
        points = generator.uniform(0, 60, (number + 2, 2))
        names = tuple(str(name) for name in range(number + 2))
        annotations.append(
            Annotation(f"{number}", "thing", tmp_path / f"{number}.png", (0.0, 0.0, 60.0, 60.0), names, points)
        )
    rendered = generator.integers(0, 256, (40, 40, 3), dtype=np.uint8)
    annotations.append(Annotation("r", "thing", lambda: rendered, None, ("a",), np.array([[4.0, 5.0]])))
    return annotations


@pytest.mark.parametrize("level", EXTRACTORS)
def test_store_gives_what_images_give(level, state, tmp_path, monkeypatch):
    annotations, extractor = make_annotations(tmp_path), build(level, state)
    seen = []
    store = FeatureStore.open(tmp_path / "store", extractor.key)
    names = fill_store(store, extractor, annotations[:2], batch=2)
    names = fill_store(store, extractor, annotations, batch=2, progress=lambda *counts: seen.append(counts))
    assert seen == [(3, 4), (4, 4)]
    monkeypatch.setattr(extractor, "extract", lambda *_: pytest.fail("computed again"))
    again = FeatureStore.open(tmp_path / "store", extractor.key)
    assert fill_store(again, extractor, annotations) == names
    monkeypatch.undo()
    features = read_features(again, extractor, names[::-1])
    assert features.local.shape == (4, 4, 512)
    image, points = load_crop(annotations[2], SIZE)
    direct = extractor.compute(torch.tensor(image)[None], [torch.from_numpy(points)])
    torch.testing.assert_close(features.local[1, :4], direct.local[0], atol=2e-3, rtol=0)
    with pytest.raises(ValueError, match="names"):
        read_features(again, extractor, [])


def test_what_was_once_read_otherwise_has_a_new_entry(tmp_path):
    one = make_annotations(tmp_path)[0]
    assert "upright" not in name_entry(one)
    exif = Image.Exif()
    for turn in (1, 3):  # A picture that a phone held the right way, and one that stands on its head.
        exif[0x0112] = turn
        with Image.open(one.image) as picture:
            pixels = picture.convert("RGB")
        pixels.save(one.image, exif=exif)
        assert name_entry(one).endswith(" upright") == (turn == 3)
    Image.fromarray(np.zeros((9, 9, 4), np.uint8)).save(one.image)
    assert name_entry(one).endswith(" upright")


def test_entry_name_follows_content(tmp_path):
    first, second = make_annotations(tmp_path)[:2]
    name = name_entry(first)
    assert name != name_entry(second)
    (tmp_path / "0.png").write_bytes((tmp_path / "1.png").read_bytes())
    assert name != name_entry(first)


def test_misuse_is_named(state):
    with pytest.raises(ValueError, match="multiple of 16"):
        build_extractor("frozen", weights=state, precision="float32", size=100)
    with pytest.raises(ValueError, match="frozen, local, late, full"):
        build_extractor("half", weights=state)
    with pytest.raises(ValueError, match="points"):
        build("frozen", state).compute(torch.zeros(2, SIZE, SIZE, 3, dtype=torch.uint8), [torch.zeros(1, 2)])
    with pytest.raises(ValueError, match="96"):
        build("frozen", state).compute(torch.zeros(1, 64, 64, 3, dtype=torch.uint8), [torch.zeros(1, 2)])


def test_throughput_counts_convolutions(state):
    measured = {level: measure_extractor(build(level, state), images=2, repeats=1) for level in EXTRACTORS}
    assert measured["frozen"]["extract"].convolution_share > 0.5
    assert measured["full"]["train"].convolution_share > 0.5
    assert 0 < measured["local"]["train"].convolution_share <= 1
    assert measured["frozen"]["train"].convolution_share == 0
    assert "images/s" in str(measured["local"]["train"])
    fast, slow = measured["local"]["train"], measured["full"]["train"]
    assert fast.images_per_second > slow.images_per_second
