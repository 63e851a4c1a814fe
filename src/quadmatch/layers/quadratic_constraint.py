"""The paper's core as a part: any head's matching, moved towards agreement of the two structures."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypedDict, Unpack, get_args

from jaxtyping import Bool
from torch import Tensor, nn

from quadmatch.graph import GraphPair
from quadmatch.layers.affinity import divide_by_largest
from quadmatch.matching import Features, Head, Matching
from quadmatch.solvers.linear.sinkhorn import sinkhorn
from quadmatch.solvers.quadratic.frank_wolfe import frank_wolfe

Unary = Literal["assignment", "scores", "logits"]
Output = Literal["constrained", "residual"]


class SolverOptions(TypedDict, total=False):
    """Keywords of `frank_wolfe`, which has their defaults."""

    weight: float
    """λ of the structures; 1 − λ is the weight of the scores."""
    outer: int
    """The paper's m₁: rounds, each of which ends in a projection."""
    inner: int
    """The paper's m₂: steps of a round."""
    direction: Literal["entropic", "shifted"]
    temperature: float
    """Of the Sinkhorn that finds an entropic direction."""
    step: Literal["schedule", "line_search"]
    detach: bool


class StepOptions(SolverOptions, total=False):
    """Keywords of `QuadraticStep`, which has the defaults of those that are its own."""

    unary: Unary
    output: Output
    share: float
    output_temperature: float
    divide: bool
    sinkhorn_iterations: int


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
    - `weight`, `outer`, `inner`, `direction`, `temperature`, `step`, `detach` and `sinkhorn_iterations` as
      in `frank_wolfe`.
    """

    def __init__(
        self,
        *,
        unary: Unary = "assignment",
        output: Output = "constrained",
        share: float = 0.5,
        output_temperature: float = 0.05,
        divide: bool = False,
        sinkhorn_iterations: int = 20,
        **solver: Unpack[SolverOptions],
    ) -> None:
        super().__init__()
        if unary not in get_args(Unary):
            raise ValueError(f"unary must be one of {', '.join(get_args(Unary))}, got {unary!r}")
        if output not in get_args(Output):
            raise ValueError(f"output must be 'constrained' or 'residual', got {output!r}")
        if unknown := sorted(set(solver) - set(SolverOptions.__annotations__)):
            raise TypeError(f"QuadraticStep has no option {', '.join(unknown)}")
        self.unary, self.output, self.share, self.divide = unary, output, share, divide
        self.output_temperature, self.sinkhorn_iterations = output_temperature, sinkhorn_iterations
        self.solver = solver

    def forward(self, matching: Matching, mask: Bool[Tensor, "B N M"]) -> Matching:
        """The constrained matching, which keeps the assignment before it as `unconstrained`."""
        unary = start = matching.assignment if self.unary != "scores" else matching.unary
        if self.unary == "logits":
            unary = matching.unary / self.output_temperature
        source, target = matching.structure_source, matching.structure_target
        if self.unary == "scores" and unary.device.type != "mps":
            # Raw scores enter in the third power and nearly cancel: single precision leaves three digits.
            unary, source, target = unary.double(), source.double(), target.double()
        rounds = self.sinkhorn_iterations
        solution = frank_wolfe(unary, source, target, mask, start=start, sinkhorn_iterations=rounds, **self.solver).to(
            matching.assignment.dtype
        )
        if self.output == "residual":
            scores = matching.unary + self.share * solution
            if self.divide and not self.training:
                scores = divide_by_largest(scores, mask)
            solution = sinkhorn(scores, mask, temperature=self.output_temperature, iterations=rounds)
        return replace(matching, assignment=solution, unconstrained=matching.release().assignment)


class QuadraticConstraint(nn.Module):
    """A head around a head: the inner head's matching under the quadratic constraint.

    The options are those of `QuadraticStep`; a step that is made already may be given instead. In training,
    gradients flow through the constraint into the inner head and into its structures. The discrete form
    is in `decode`.
    """

    def __init__(self, head: Head, constrain: QuadraticStep | None = None, **options: Unpack[StepOptions]) -> None:
        super().__init__()
        self.head = head
        self.constrain = QuadraticStep(**options) if constrain is None else constrain

    def forward(self, pair: GraphPair, source: Features, target: Features) -> Matching:
        """What the inner head says, constrained."""
        constrained: Matching = self.constrain(self.head(pair, source, target), pair.mask)
        return constrained
