"""Which convolutions can be computed in another form, and the form put in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from torch import nn

M = TypeVar("M", bound=nn.Module)

FEWEST = 16
"""Input channels below which another form costs more than it saves."""


def is_plain(convolution: nn.Conv2d) -> bool:
    """Whether this is a plain 3×3 convolution with padding 1."""
    form = (convolution.kernel_size, convolution.padding, convolution.stride, convolution.dilation)
    return form == ((3, 3), (1, 1), (1, 1), (1, 1)) and convolution.groups == 1


def check_plain(convolution: nn.Conv2d) -> None:
    """Refuse what is not."""
    if not is_plain(convolution):
        raise ValueError(f"{convolution} has no other form: it must be 3×3 with padding 1")


def replace_convolutions(network: M, form: Callable[[nn.Conv2d], nn.Module]) -> M:
    """Put another form in the place of all convolutions that gain by it."""
    for name, child in network.named_children():
        if isinstance(child, nn.Conv2d) and is_plain(child) and child.in_channels >= FEWEST:
            setattr(network, name, form(child))
        else:
            replace_convolutions(child, form)
    return network
