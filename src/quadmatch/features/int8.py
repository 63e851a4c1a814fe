"""Convolutions of whole numbers with eight bits, for processors that multiply four of them in the place of one float.

Weights are rounded once, each output channel by a scale of its own. Activations are rounded for each image by what
is largest in it: so nothing has to be calibrated on a data set, any weights will do, and an image's features do not
depend on those beside it. The products are added up exactly, in 32 bits.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quadmatch.features.forms import check_plain

STEPS, WEIGHT_STEPS = 255, 127
_ONES = [1, 1]
_SMALLEST = 1e-30
"""In the place of a scale of zero: what is rounded by it is zero too."""


class ByteConvolution(nn.Module):
    """A 3×3 convolution of what is not negative, as it is after ReLU, rounded to bytes; for use without gradients.

    Elsewhere than on a processor it is the convolution that it was made of.
    """

    def __init__(self, convolution: nn.Conv2d) -> None:
        super().__init__()
        check_plain(convolution)
        if not can_multiply_bytes():
            raise ValueError("int8 needs a processor with vnni, and torch 2.13: choose float32 or bfloat16")
        self.plain = convolution
        weight = convolution.weight.detach()
        self.scales = weight.abs().amax((1, 2, 3)).clamp_min(_SMALLEST) / WEIGHT_STEPS
        self.zeros = torch.zeros(len(weight), dtype=torch.int64)
        rounded = (weight / self.scales[:, None, None, None]).round().to(torch.int8)
        self.weight = torch.ops.onednn.qconv_prepack(rounded, self.scales, 1.0, 0, _ONES, _ONES, _ONES, 1, None)

    def __reduce__(self) -> tuple[type[ByteConvolution], tuple[nn.Conv2d]]:
        """Copied and sent as what it was made of: how torch lays out rounded weights is its own affair."""
        return ByteConvolution, (self.plain,)

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D H W"]:
        """The convolution, channels last in memory."""
        if images.device.type != "cpu":
            made: Tensor = self.plain(images)
            return made
        # Each image has a scale of its own, and this function one for all that it is given.
        return torch.cat([self._convolve(one) for one in torch.split(images, 1)])

    def _convolve(self, image: Float[Tensor, "1 C H W"]) -> Float[Tensor, "1 D H W"]:
        scale = max(float(image.amax()) / STEPS, _SMALLEST)
        # The conversion cuts off: adding a half before it rounds.
        rounded = torch.add(image.new_tensor(0.5), image, alpha=1 / scale).to(torch.uint8)
        kernel = self.weight, self.scales, self.zeros, self.plain.bias, _ONES, _ONES, _ONES, 1
        made: Tensor = torch.ops.onednn.qconv2d_pointwise(
            rounded, scale, 0, *kernel, 1.0, 0, torch.float32, "none", [], ""
        )
        return made


def can_multiply_bytes() -> bool:
    """Whether this processor has instructions for it, and torch functions that use them."""
    known: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(known.get("avx512_vnni") or known.get("avx_vnni")) and hasattr(torch.ops.onednn, "qconv2d_pointwise")
