"""Convolutions of bytes: a rounding away from direct ones, of each image alone, never where something is trained."""

import copy
import pickle

import pytest
import torch
from torch import nn
from vgg_scene import SIZE, make_maps, make_scene, make_state

from quadmatch.features import int8
from quadmatch.features.forms import replace_convolutions
from quadmatch.features.int8 import ByteConvolution, can_multiply_bytes
from quadmatch.features.levels import build_extractor
from quadmatch.features.precision import Precision

needs_bytes = pytest.mark.skipif(not can_multiply_bytes(), reason="this processor does not multiply bytes")


def make_layer(channels: int = 32) -> nn.Conv2d:
    torch.manual_seed(0)
    return nn.Conv2d(channels, 24, 3, padding=1).requires_grad_(False)


@needs_bytes
def test_rounding_is_all_that_differs():
    layer, images = make_layer(), torch.rand(2, 32, 9, 7).contiguous(memory_format=torch.channels_last)
    weights = layer.weight / layer.weight.abs().amax((1, 2, 3), keepdim=True) * 127
    scales = images.amax((1, 2, 3), keepdim=True) / 255
    rounded = nn.functional.conv2d((images / scales).round(), weights.round(), padding=1)
    expected = rounded * layer.weight.abs().amax((1, 2, 3))[:, None, None] / 127 * scales + layer.bias[:, None, None]
    found = ByteConvolution(layer)(images)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    assert (found - layer(images)).abs().max() < 0.02 * layer(images).abs().max()


@needs_bytes
def test_an_image_does_not_depend_on_those_beside_it():
    images = torch.rand(3, 32, 8, 8) * torch.tensor([1.0, 100.0, 0.0])[:, None, None, None]
    made = ByteConvolution(make_layer())
    together = made(images)
    assert all(torch.equal(together[i : i + 1], made(images[i : i + 1])) for i in range(3))
    torch.testing.assert_close(together[2], make_layer().bias[:, None, None].expand(24, 8, 8))


@needs_bytes
def test_the_whole_trunk_points_the_same_way():
    state, (images, points) = make_state(), make_scene()
    expected = make_maps(state, images)
    extractor = build_extractor("local", weights=state, precision="int8,1", size=SIZE)
    assert str(extractor.precision) == "int8,channels_last,1"
    for layer, found in extractor.trunk.run(images, ["pool3", "relu4_2", "pool4", "relu5_1"]).items():
        assert nn.functional.cosine_similarity(found, expected[layer]).mean() > 0.995, layer
    assert len(extractor.extract(images, points)) == len(points)


@needs_bytes
def test_copies_compute_the_same():
    made, images = ByteConvolution(make_layer()), torch.rand(1, 32, 8, 8)
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert torch.equal(other(images), made(images))


def test_another_processor_is_refused(monkeypatch):
    monkeypatch.setattr(int8, "can_multiply_bytes", lambda: False)
    with pytest.raises(ValueError, match="int8 needs a processor with vnni"):
        ByteConvolution(make_layer())
    monkeypatch.undo()
    with pytest.raises(ValueError, match="must be 3×3 with padding 1"):
        ByteConvolution(nn.Conv2d(32, 32, 1))


@needs_bytes
def test_what_is_trained_is_not_rounded():
    extractor = build_extractor("full", weights=make_state(), precision=Precision("int8"), size=SIZE)
    assert not any(isinstance(one, ByteConvolution) for one in extractor.modules())
    kept = replace_convolutions(nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), make_layer()), ByteConvolution)
    assert [isinstance(one, ByteConvolution) for one in kept] == [False, True]  # Pixels may be negative.
