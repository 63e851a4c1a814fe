"""MatchResult: which node goes with which, how sure that is, and what the whole match is worth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int, Shaped
from numpy.typing import NDArray
from torch import Tensor

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

Array = np.ndarray | Tensor


@dataclass(eq=False, slots=True)
class MatchResult:
    """A match of two graphs in the caller's own node order; numpy or torch, as the caller's input was."""

    pairs: Int[Array, "K 2"]
    """(source, target) indices, in the order of the source."""
    scores: Float[Array, " K"]
    """Between 0 and 1: how well each pair fits."""
    matrix: Float[Array, "N M"] | tuple[int, int]
    """The assignment, or its shape where it is one at the pairs and zero elsewhere: then it is made when asked for."""
    objective: float | Tensor
    """What the method minimised; a tensor with gradient where the method has one."""
    iterations: int
    """Steps that were made."""
    converged: bool
    """False where the steps ran out before nothing changed any more."""
    source: Shaped[Array, "N N"] | None = field(default=None, repr=False)
    """The graphs that were matched, where they are known: what `plot` draws."""
    target: Shaped[Array, "M M"] | None = field(default=None, repr=False)
    names: dict[str, list[Any]] = field(default_factory=dict, repr=False)
    """Names of the nodes of graphs "a" (the source) and "b", where what was given has some."""
    matchable: float | None = None
    """How probable it is that the two have anything in common, from 0 to 1; None where the method does not say."""
    orientation: str | None = None
    """How the second picture was turned to match it: `0`, or as in `90` or `mirror-90`; None where there is none."""

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def assignment(self) -> Float[Array, "N M"]:
        """0/1 from a discrete method, soft from a differentiable one."""
        if isinstance(self.matrix, tuple):
            self.matrix = _mark(self.pairs, self.scores, self.matrix)
        return self.matrix

    @property
    def named_pairs(self) -> list[tuple[Any, Any]]:
        """The pairs by the names of their nodes; by indices where a graph has no names."""
        (own, other) = (self.names.get(side) for side in "ab")
        pairs = to_numpy(self.pairs).tolist()
        return [(own[i] if own else i, other[j] if other else j) for i, j in pairs]

    def to_json(self, *, assignment: bool = False) -> dict[str, Any]:
        """The result as a dictionary that `json` can write; the full assignment matrix on request."""
        content: dict[str, Any] = {
            "nodes": list(self.assignment.shape),
            "pairs": to_numpy(self.pairs).tolist(),
            "scores": to_numpy(self.scores).tolist(),
            "objective": to_float(self.objective),
            "iterations": self.iterations,
            "converged": self.converged,
        }
        if self.matchable is not None:
            content["matchable"] = self.matchable
        if self.orientation is not None:
            content["orientation"] = self.orientation
        if assignment:
            content["assignment"] = to_numpy(self.assignment).tolist()
        return content

    def plot(
        self, points_a: Any = None, points_b: Any = None, *, path: str | Path | None = None, **options: Any
    ) -> Figure:
        """Draw both graphs side by side with their match; `options` are those of `drawing.match.draw_match`."""
        from quadmatch.drawing.match import draw_match

        return draw_match(self, points_a, points_b, path=path, **options)

    def __repr__(self) -> str:
        n, m = self.assignment.shape
        mean = f", mean score {float(to_numpy(self.scores).mean()):.3f}" if len(self.pairs) else ""
        state = "" if self.converged else ", not converged"
        return (
            f"MatchResult({len(self.pairs)} pairs of {n} and {m} nodes{mean}, "
            f"objective {to_float(self.objective):.6g}, {self.iterations} iterations{state})"
        )

    def _repr_html_(self) -> str:
        shown = 20
        pairs, scores = to_numpy(self.pairs)[:shown].tolist(), to_numpy(self.scores)[:shown].tolist()
        rows = "".join(f"<tr><td>{i}</td><td>{j}</td><td>{s:.3f}</td></tr>" for (i, j), s in zip(pairs, scores))
        more = f"<p>and {len(self.pairs) - shown} more</p>" if len(self.pairs) > shown else ""
        head = "<tr><th>source</th><th>target</th><th>score</th></tr>"
        return f"<p>{repr(self)[12:-1]}</p><table>{head}{rows}</table>{more}"


def _mark(pairs: Int[Array, "K 2"], scores: Float[Array, " K"], shape: tuple[int, int]) -> Float[Array, "N M"]:
    """One at the pairs and zero elsewhere, in the format of the scores and on their device."""
    marked = scores.new_zeros(shape) if isinstance(scores, Tensor) else np.zeros(shape, scores.dtype)
    marked[pairs[:, 0], pairs[:, 1]] = 1
    return marked


def to_numpy(values: Array) -> NDArray[Any]:
    """The values as a numpy array, wherever they are."""
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)


def to_float(value: float | Tensor) -> float:
    """The number, without its gradient."""
    return float(value.detach()) if isinstance(value, Tensor) else value
