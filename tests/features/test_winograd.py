"""Convolutions by tiles: what a direct convolution computes, at every size, and never where something is trained."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from vgg_scene import SIZE, make_maps, make_scene, make_state

from quadmatch.features import winograd
from quadmatch.features.forms import replace_convolutions
from quadmatch.features.levels import build_extractor
from quadmatch.features.precision import Precision
from quadmatch.features.winograd import TiledConvolution

SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 9), st.integers(1, 13), st.integers(1, 13))


@settings(max_examples=30, deadline=None)
@given(SHAPES, st.booleans(), st.sampled_from([1, 3, 256]))
def test_tiles_are_the_direct_convolution(shape, biased, together):
    torch.manual_seed(sum(shape))
    convolution = nn.Conv2d(shape[1], 5, 3, padding=1, bias=biased).double()
    images = torch.randn(shape, dtype=torch.float64)
    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        patch.setattr(winograd, "TOGETHER", together)
        for one in ("_INPUTS", "_KERNELS", "_OUTPUTS"):
            patch.setattr(winograd, one, getattr(winograd, one).double())
        found = TiledConvolution(convolution)(images)
        # Fractions such as 1/24 are rounded to single precision in the constants.
        torch.testing.assert_close(found, convolution(images), atol=1e-5, rtol=1e-5)


def test_the_whole_trunk_agrees_to_single_precision():
    state, (images, points) = make_state(), make_scene()
    expected = make_maps(state, images)
    extractor = build_extractor("local", weights=state, precision="float32,winograd,1", size=SIZE)
    maps = extractor.trunk.run(images, ["pool3", "relu4_2", "pool4", "relu5_1"])
    for layer, found in maps.items():
        assert found.shape == expected[layer].shape
        assert (found - expected[layer]).abs().max() < 1e-5 * expected[layer].abs().max(), layer
    assert len(extractor.extract(images, points)) == len(points)


def test_only_what_gains_is_tiled():
    kinds = [nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 32, 1), nn.Conv2d(32, 32, 3), nn.Conv2d(32, 32, 3, 2, 1)]
    kinds += [nn.Conv2d(32, 32, 3, padding=1, groups=2), nn.Conv2d(32, 32, 3, padding=1)]
    tiled = [isinstance(one, TiledConvolution) for one in replace_convolutions(nn.Sequential(*kinds), TiledConvolution)]
    assert tiled == [False] * 5 + [True]
    with pytest.raises(ValueError, match="must be 3×3 with padding 1"):
        TiledConvolution(nn.Conv2d(32, 32, 3))


def test_what_is_trained_is_convolved_directly():
    state, (images, points) = make_state(), make_scene()
    extractor = build_extractor("full", weights=state, precision=Precision(memory="winograd"), size=SIZE)
    assert not any(isinstance(one, TiledConvolution) for one in extractor.modules())
    features = extractor.compute(images, points)
    (features.local.sum() + features.edge.sum()).backward()
    assert all(one.grad is not None for one in extractor.network.parameters() if one.requires_grad)
