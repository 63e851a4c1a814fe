"""Work on the real nodes of a padded batch only."""

from __future__ import annotations

from collections.abc import Callable

from jaxtyping import Bool, Float
from torch import Tensor


def map_nodes(
    function: Callable[[Tensor], Tensor], features: Float[Tensor, "B N C"], mask: Bool[Tensor, "B N"] | None
) -> Float[Tensor, "B N D"]:
    """`function` of each real node's features, zero on padding; without a mask every node is real.

    Graphs of three and of twenty nodes share a batch: wide products on padding would double a step.
    """
    if mask is None or bool(mask.all()):
        return function(features)
    real = mask.flatten().nonzero()[:, 0]
    packed = function(features.flatten(0, 1).index_select(0, real))
    spread: Tensor = packed.new_zeros(mask.numel(), packed.shape[-1]).index_copy(0, real, packed)
    return spread.view(*mask.shape, -1)
