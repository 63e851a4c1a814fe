"""The network and what is read out of it at keypoints, against dense maps and plain convolutions."""

import pytest
import torch
from torch.nn.functional import grid_sample, normalize
from vgg_scene import SIZE, make_state

from quadmatch.features.local import LocalConvolutions, sample_grid
from quadmatch.features.readout import read_out, sample, to_cells
from quadmatch.features.vgg import MEAN, STD, STRIDES, VGG16, normalise_images


def test_network_has_torchvisions_names_and_sizes(maps, state):
    assert {layer: tuple(values.shape[1:]) for layer, values in maps.items()} == {
        "pool3": (256, SIZE // 8, SIZE // 8),
        "relu4_2": (512, SIZE // 8, SIZE // 8),
        "pool4": (512, SIZE // 16, SIZE // 16),
        "relu5_1": (512, SIZE // 16, SIZE // 16),
    }
    positions = [0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28]
    assert sorted(state) == sorted(f"features.{p}.{kind}" for p in positions for kind in ("weight", "bias"))
    assert [key for key in make_state(batch_norm=True) if key.startswith("features.41.")][:1] == ["features.41.weight"]
    with pytest.raises(ValueError, match="relu5_3"):
        VGG16("relu5_1")(torch.zeros(1, 3, 32, 32), ["relu5_3"])


def test_wanted_layers_are_not_overwritten_by_later_ones(state, scene):
    network = VGG16("relu5_1").eval()
    network.load_state_dict({key: state[key] for key in network.state_dict()})
    image = normalise_images(scene[0][:1])
    with torch.no_grad():
        first = image.clone()
        for name, module in zip(network.names, network.features):
            first = module(first.clone())
            if name in STRIDES:
                torch.testing.assert_close(network(image, [name])[name], first, rtol=1e-4, atol=1e-4)


def test_images_are_normalised_as_imagenet_expects():
    images = torch.tensor([[[[0, 128, 255]]]], dtype=torch.uint8)
    expected = [(value / 255 - mean) / std for value, mean, std in zip((0, 128, 255), MEAN, STD)]
    torch.testing.assert_close(normalise_images(images).flatten(), torch.tensor(expected))


@pytest.mark.parametrize("layer", ["relu4_2", "relu5_1"])
def test_read_out_is_grid_sample_of_normalised_maps(layer, maps):
    points = torch.rand(3, 11, 2, generator=torch.Generator().manual_seed(3)) * (SIZE + 40) - 20
    dense = maps[layer] / maps[layer].norm(dim=1, keepdim=True)
    grid = (2 * points / SIZE - 1)[:, :, None]
    expected = grid_sample(dense, grid, padding_mode="border", align_corners=False)[..., 0].transpose(1, 2)
    found = read_out(maps[layer], points, STRIDES[layer])
    torch.testing.assert_close(found, expected)
    assert (found.norm(dim=-1) <= 1 + 1e-5).all()


def test_read_out_interpolates_by_hand_and_survives_dead_cells():
    maps = torch.tensor([[[[3.0, 0.0], [0.0, 0.0]], [[4.0, 0.0], [2.0, 0.0]]]])  # Normalised: (.6, .8), 0, (0, 1), 0.
    points = torch.tensor([[[8.0, 8.0], [4.0, 4.0], [6.0, 4.0], [-50.0, 99.0]]])
    expected = torch.tensor([[[0.15, 0.45], [0.6, 0.8], [0.45, 0.6], [0.0, 1.0]]])
    torch.testing.assert_close(read_out(maps, points, 8), expected)


@pytest.mark.parametrize(("layer", "side"), [("pool3", 5), ("pool4", 3)])
def test_grid_at_cell_centres_is_the_map_itself(layer, side, maps):
    dense, stride = maps[layer], STRIDES[layer]
    padded = torch.nn.functional.pad(dense, [side // 2] * 4)
    columns, rows = torch.tensor([0, 2, dense.shape[-1] - 1]), torch.tensor([1, 0, dense.shape[-1] - 1])
    points = ((torch.stack([columns, rows], dim=-1) + 0.5) * stride).expand(3, -1, -1)
    found = sample_grid(dense, points, stride, side)
    for index, (column, row) in enumerate(zip(columns, rows)):
        expected = padded[:, :, row : row + side, column : column + side]
        torch.testing.assert_close(found[:, index], expected, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(
        found[:, :, :, side // 2, side // 2], sample(dense, to_cells(points, stride)), atol=1e-4, rtol=1e-4
    )


def test_grid_around_a_point_outside_is_that_of_the_nearest_inside(maps):
    outside, nearest = torch.tensor([[[-30.0, 200.0]]]), torch.tensor([[[4.0, SIZE - 4.0]]])
    torch.testing.assert_close(
        sample_grid(maps["pool3"][:1], outside, 8, 5), sample_grid(maps["pool3"][:1], nearest, 8, 5)
    )


def test_local_convolutions_are_convolutions(state):
    module = LocalConvolutions()
    module.load_state_dict({key: state[key] for key in module.state_dict()})
    near, wide = torch.rand(4, 256, 5, 5), torch.rand(4, 512, 3, 3)
    local, edge = module(near, wide)
    first, second, third = (module.features[key] for key in ("17", "19", "24"))
    expected = second(first(near).relu()).relu().flatten(1)
    torch.testing.assert_close(local, normalize(expected, dim=-1), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(edge, normalize(third(wide).relu().flatten(1), dim=-1), atol=1e-5, rtol=1e-4)
    (local.sum() + edge.sum()).backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in module.parameters())
