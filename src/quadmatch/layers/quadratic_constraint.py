"""The paper's core as a part: any head's matching, moved towards agreement of the two structures."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

from jaxtyping import Bool
from torch import Tensor, nn

from quadmatch.graph import GraphPair
from quadmatch.layers.affinity import divide_by_largest
from quadmatch.matching import Features, Head, Matching
from quadmatch.solvers.frank_wolfe import frank_wolfe
from quadmatch.solvers.sinkhorn import sinkhorn

Unary = Literal["assignment", "scores", "logits"]


class QuadraticStep(nn.Module):
    """Matching → Matching by differentiable Frank–Wolfe (arXiv 2103.06643, section 3.2); no parameters.

    Minimises `weight ‖A_D − X B_D Xᵀ‖² − (1 − weight) Σ X_u ∘ X` over soft assignments X, with the
    matching's structures A_D and B_D.

    - `unary`: X_u and the start are the matching's "assignment" (the paper, under the reading
      X_0 = X_u = Sinkhorn(K_p)), its raw "scores" (the released code), or, as "logits", X_u is the scores
      over `output_temperature` and the start their assignment. With `temperature` 1 − weight, structures
      then add to the scores within one Sinkhorn: what the scores learn from is not flattened by a second.
    - `output`: X itself ("constrained", the paper), or `Sinkhorn((s + share·X) / output_temperature)`
      with the raw scores s ("residual", the released code).
    - `output_temperature`: that of the Sinkhorn which turns the head's scores into its assignment.
    - `divide`: the released code divides s + share·X by its largest entry in evaluation mode.
    - `outer`, `inner`: the paper's m₁ and m₂; `direction`, `temperature`, `step`, `detach` and
      `sinkhorn_iterations` as in `frank_wolfe`.
    """

    def __init__(
        self,
        *,
        weight: float = 0.1,
        outer: int = 3,
        inner: int = 5,
        direction: Literal["entropic", "shifted"] = "entropic",
        temperature: float = 0.1,
        step: Literal["schedule", "line_search"] = "schedule",
        detach: bool = False,
        sinkhorn_iterations: int = 20,
        unary: Unary = "assignment",
        output: Literal["constrained", "residual"] = "constrained",
        share: float = 0.5,
        output_temperature: float = 0.05,
        divide: bool = False,
    ) -> None:
        super().__init__()
        if unary not in get_args(Unary):
            raise ValueError(f"unary must be one of {', '.join(get_args(Unary))}, got {unary!r}")
        if output not in ("constrained", "residual"):
            raise ValueError(f"output must be 'constrained' or 'residual', got {output!r}")
        self.weight, self.outer, self.inner, self.detach = weight, outer, inner, detach
        self.direction, self.temperature, self.step = direction, temperature, step
        self.sinkhorn_iterations, self.unary, self.output = sinkhorn_iterations, unary, output
        self.share, self.output_temperature, self.divide = share, output_temperature, divide

    def forward(self, matching: Matching, mask: Bool[Tensor, "B N M"]) -> Matching:
        """The constrained matching; `earlier` ends with the assignment that came in."""
        unary = start = matching.assignment if self.unary != "scores" else matching.unary
        if self.unary == "logits":
            unary = matching.unary / self.output_temperature
        source, target = matching.structure_source, matching.structure_target
        if self.unary == "scores" and unary.device.type != "mps":
            # Raw scores enter in the third power and nearly cancel: single precision leaves three digits.
            unary, source, target = unary.double(), source.double(), target.double()
        solution = frank_wolfe(
            unary,
            source,
            target,
            mask,
            start=start,
            weight=self.weight,
            outer=self.outer,
            inner=self.inner,
            direction=self.direction,
            temperature=self.temperature,
            step=self.step,
            detach=self.detach,
            sinkhorn_iterations=self.sinkhorn_iterations,
        ).to(matching.assignment.dtype)
        if self.output == "residual":
            scores = matching.unary + self.share * solution
            if self.divide and not self.training:
                scores = divide_by_largest(scores, mask)
            solution = sinkhorn(
                scores, mask, temperature=self.output_temperature, iterations=self.sinkhorn_iterations
            )
        return replace(matching, assignment=solution, earlier=(*matching.earlier, matching.assignment))


class QuadraticConstraint(nn.Module):
    """A head around a head: the inner head's matching under the quadratic constraint.

    All switches are those of `QuadraticStep`. Trained, the gradient flows through the constraint into
    the inner head and into what it gives as structures; the discrete form is in `decode`.
    """

    def __init__(
        self,
        head: Head,
        *,
        weight: float = 0.1,
        outer: int = 3,
        inner: int = 5,
        direction: Literal["entropic", "shifted"] = "entropic",
        temperature: float = 0.1,
        step: Literal["schedule", "line_search"] = "schedule",
        detach: bool = False,
        unary: Unary = "assignment",
        output: Literal["constrained", "residual"] = "constrained",
        output_temperature: float = 0.05,
    ) -> None:
        super().__init__()
        self.head = head
        self.constrain = QuadraticStep(
            weight=weight,
            outer=outer,
            inner=inner,
            direction=direction,
            temperature=temperature,
            step=step,
            detach=detach,
            unary=unary,
            output=output,
            output_temperature=output_temperature,
        )

    def forward(self, pair: GraphPair, source: Features, target: Features) -> Matching:
        """What the inner head says, constrained; `earlier` keeps the unconstrained assignment."""
        constrained: Matching = self.constrain(self.head(pair, source, target), pair.mask)
        return constrained
