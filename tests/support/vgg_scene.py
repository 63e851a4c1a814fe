"""A small scene and a random network that several tests look at."""

import torch

from quadmatch.features.vgg import VGG16, normalise_images

SIZE = 96


def make_state(batch_norm=False):
    torch.manual_seed(0)
    network = VGG16("relu5_3", batch_norm=batch_norm)
    for module in network.features:
        if isinstance(module, torch.nn.Conv2d):  # As strong as a trained network: the signal reaches the end.
            torch.nn.init.kaiming_normal_(module.weight)
            torch.nn.init.normal_(module.bias, std=0.1)
    return network.state_dict()


def make_scene():
    """Three images with four, no and seven keypoints, one of them outside."""
    generator = torch.Generator().manual_seed(1)
    images = torch.randint(0, 256, (3, SIZE, SIZE, 3), dtype=torch.uint8, generator=generator)
    points = [torch.rand(count, 2, generator=generator) * SIZE for count in (4, 0, 7)]
    points[0][0] = torch.tensor([-20.0, SIZE + 9])
    return images, points


def make_maps(state, images):
    """The activations of the whole images."""
    network = VGG16("relu5_1").eval()
    network.load_state_dict({key: state[key] for key in network.state_dict()})
    with torch.no_grad():
        return network(normalise_images(images), ["pool3", "relu4_2", "pool4", "relu5_1"])
