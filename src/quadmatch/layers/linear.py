"""A linear map whose weights are laid out once, as a processor multiplies fastest, where nobody learns from it."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor, nn

WORTHWHILE = 64
"""Inputs and outputs from which on laying weights out pays."""


class Linear(nn.Linear):
    """`torch.nn.Linear`, in torch's inference mode on a processor from weights that are kept in another layout.

    A library lays the weights of a product out anew each time; for the few rows of a pair that is a fourth of its
    time. What is kept is made again after the weights have changed.
    """

    def forward(self, inputs: Float[Tensor, "*R C"]) -> Float[Tensor, "*R D"]:
        """`x Wᵀ + b`."""
        if not self._can_keep(inputs):
            return super().forward(inputs)
        made: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, lay_out(self), self.bias, "none", [], "")
        return made

    def _can_keep(self, inputs: Tensor) -> bool:
        return (
            torch.is_inference_mode_enabled()
            and CAN_LAY_OUT
            and min(self.weight.shape) >= WORTHWHILE
            and inputs.numel() > 0
            and inputs.dtype == self.weight.dtype == torch.float32
            and inputs.is_cpu
            and self.weight.is_cpu
            and not self.weight.is_inference()  # Nothing says when such a tensor changes.
            and not torch.is_autocast_enabled("cpu")
        )


def lay_out(linear: nn.Linear) -> Tensor:
    """The weights of a linear map as the processor's library wants them, kept as long as they are the same."""
    weight = linear.weight
    state = weight.data_ptr(), weight._version
    known = _KEPT.get(linear)
    if known is None or known[0] != state:
        known = _KEPT[linear] = state, torch.ops.mkldnn._reorder_linear_weight(weight.detach())
    return known[1]


def _try_out() -> bool:
    """Whether this torch and processor have the functions that are used."""
    try:
        with torch.inference_mode():
            probe = nn.Linear(WORTHWHILE, WORTHWHILE)
            packed = torch.ops.mkldnn._reorder_linear_weight(probe.weight)
            torch.ops.mkldnn._linear_pointwise(torch.zeros(1, WORTHWHILE), packed, probe.bias, "none", [], "")
    except (AttributeError, RuntimeError):
        return False
    return True


_KEPT: WeakKeyDictionary[nn.Linear, tuple[tuple[int, int], Tensor]] = WeakKeyDictionary()
CAN_LAY_OUT = _try_out()
