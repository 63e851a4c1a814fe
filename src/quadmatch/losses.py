"""Losses between a soft matching and the truth, all with one signature: loss(matching, pair) → scalar.

What is compared is `matching.assignment`, inside the mask only. Where a loss divides by the number of
matches, that is `min(n, m)`, the most that two graphs of n and m nodes can have: it equals the number of
true matches when every keypoint has a partner, and bounds every ratio by 1 when some have none.
Every factory takes `earlier`, the weight of the mean of the same loss over `matching.stages`: what each
layer said before any constraint, so that a network is supervised alike with the constraint and without
(`contrastive` compares the layers' scores there, not their assignments).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy, binary_cross_entropy_with_logits

from quadmatch.graph import GraphPair
from quadmatch.matching import Loss, Matching
from quadmatch.solvers.linear.hungarian import hungarian

Comparison = Callable[[Tensor, GraphPair], Tensor]


def _supervise(compare: Comparison, earlier: float) -> Loss:
    def loss(matching: Matching, pair: GraphPair) -> Tensor:
        total = compare(matching.assignment, pair)
        if earlier:
            others = [compare(stage.assignment, pair) for stage in matching.stages]
            total = total + earlier * torch.stack(others).mean()
        return total

    return loss


def _count_possible(pair: GraphPair) -> Tensor:
    """Most matches that each pair can have, [B]."""
    return torch.minimum(pair.source.sizes, pair.target.sizes)


def _split_errors(assignment: Tensor, pair: GraphPair) -> tuple[Tensor, Tensor]:
    """Mass on wrong matches and mass missing from true ones, [B] each."""
    wrong = torch.where(pair.mask & ~pair.truth, assignment, 0.0).sum((1, 2))
    missing = torch.where(pair.mask & pair.truth, 1 - assignment, 0.0).sum((1, 2))
    return wrong, missing


def false_matching(
    alpha: float = 2.0, beta: float = 0.1, reading: Literal["paper", "released"] = "paper", *, earlier: float = 0.0
) -> Loss:
    """False-matching loss (arXiv 2103.06643, section 3.4), normalised so that it cannot overflow.

    With FP = Σ X(1−X*) and FN = Σ X*(1−X):
    - "paper": `exp(α FP/k) + exp(β FN/k)` with k = min(n, m) of each pair, mean over the pairs. A pair
      counts the same whatever its size, and a batch is worth the mean of its pairs alone.
    - "released": `exp(α FN/K) + exp(β FP/K)` with FN, FP and K = Σ min(n, m) summed over the batch
      first: every keypoint counts the same.
    Both lie between 2 and e^α + e^β. Where every keypoint has a partner and rows sum to 1, FP = FN.
    """
    if reading not in ("paper", "released"):
        raise ValueError(f"reading must be 'paper' or 'released', got {reading!r}")

    def compare(assignment: Tensor, pair: GraphPair) -> Tensor:
        wrong, missing = _split_errors(assignment, pair)
        possible = _count_possible(pair)
        if reading == "released":
            count = possible.sum().clamp(min=1)
            return (alpha * missing.sum() / count).exp() + (beta * wrong.sum() / count).exp()
        count = possible.clamp(min=1)
        return ((alpha * wrong / count).exp() + (beta * missing / count).exp()).mean()

    return _supervise(compare, earlier)


def _cross_entropy(assignment: Tensor, truth: Tensor, where: Tensor) -> Tensor:
    """Σ of the binary cross-entropies inside `where`; logarithms are clamped at −100, so it is finite."""
    probability = assignment.masked_fill(~where, 0).clamp(0, 1)
    wanted = (truth & where).to(assignment.dtype)
    return binary_cross_entropy(probability, wanted, reduction="sum")


def _count_conflicts(assignment: Tensor) -> Tensor:
    """Σ X_ij X_kl over entries of one row or of one column: what two matches of one node are worth."""
    totals = sum(assignment.sum(dim).square().sum() for dim in (1, 2))
    return totals - 2 * assignment.square().sum()


def permutation(*, conflict: float = 0.0, earlier: float = 0.0) -> Loss:
    """Cross-entropy of every entry (Wang et al., PCA-GM, ICCV 2019), over Σ min(n, m) of the batch.

    `conflict` is the weight of Σ X_ij X_kl over matches that share a node (Jiang et al., GLMNet, weight 0.1).
    """

    def compare(assignment: Tensor, pair: GraphPair) -> Tensor:
        count = _count_possible(pair).sum().clamp(min=1)
        total = _cross_entropy(assignment, pair.truth, pair.mask)
        if conflict:
            total = total + conflict * _count_conflicts(assignment)
        return total / count

    return _supervise(compare, earlier)


def hungarian_attention(*, earlier: float = 0.0) -> Loss:
    """Cross-entropy on true matches and those Hungarian picks (Yu et al., ICLR 2020), over Σ min(n, m)."""

    def compare(assignment: Tensor, pair: GraphPair) -> Tensor:
        picked = hungarian(assignment.detach(), pair.mask) > 0
        count = _count_possible(pair).sum().clamp(min=1)
        return _cross_entropy(assignment, pair.truth, pair.mask & (pair.truth | picked)) / count

    return _supervise(compare, earlier)


def offset(*, extent: float = 256.0, smoothing: float = 1e-5, earlier: float = 0.0) -> Loss:
    """Displacement loss (Zanfir and Sminchisescu, GMN, CVPR 2018), mean over the true matches of the batch.

    `√(‖Σ_j X_ij q_j − q_true(i)‖² + smoothing)` with target points q in units of `extent` pixels.
    """

    def compare(assignment: Tensor, pair: GraphPair) -> Tensor:
        points = pair.target.points.masked_fill(~pair.target.mask[..., None], 0) / extent
        truth = pair.truth & pair.mask
        error = torch.where(truth.any(-1, keepdim=True), assignment - truth.to(assignment.dtype), 0.0) @ points
        distance = (error.square().sum(-1) + smoothing).sqrt()
        return torch.where(truth.any(-1), distance, 0.0).sum() / truth.sum().clamp(min=1)

    return _supervise(compare, earlier)


def hamming(*, earlier: float = 0.0) -> Loss:
    """Hamming distance to the truth (Rolínek et al., BB-GM, ECCV 2020), over Σ min(n, m) of the batch."""

    def compare(assignment: Tensor, pair: GraphPair) -> Tensor:
        wrong, missing = _split_errors(assignment, pair)
        return (wrong + missing).sum() / _count_possible(pair).sum().clamp(min=1)

    return _supervise(compare, earlier)


def contrastive(
    *, earlier: float = 1.0, matchability: float = 1.0, names: float = 0.0, smoothing: float = 1e-6
) -> Loss:
    """Each node picks its partner among all nodes of the other graph, and is picked: mean over the true matches.

    `−log X_ij` of the assignment, plus `earlier` times the mean over all layers of `−½ (log p(j|i) + log p(i|j))`
    with p the softmax of the layer's scores. `matchability` and `names` are weights of what nodes say about having
    a partner, where a head lets them, and of how well they are told from all nodes of the batch (`_judge_names`).
    """

    def pick(scores: Tensor, pair: GraphPair) -> Tensor:
        hidden = scores.masked_fill(~pair.mask, torch.finfo(scores.dtype).min)
        rows, columns = (hidden.log_softmax(dim)[pair.truth].sum() for dim in (2, 1))
        return -0.5 * (rows + columns)

    def loss(matching: Matching, pair: GraphPair) -> Tensor:
        count = pair.truth.sum().clamp(min=1)
        total = -((matching.assignment[pair.truth] + smoothing) / (1 + smoothing)).log().sum()
        if earlier:
            total = total + earlier * torch.stack([pick(one.unary, pair) for one in matching.stages]).mean()
        total = total / count
        if matchability and matching.matchable is not None:
            total = total + matchability * _judge_matchable(matching.matchable, pair)
        if names and matching.alone is not None and pair.names is not None:
            total = total + names * _judge_names(matching.alone, pair.names, pair)
        return total

    return loss


def _judge_names(alone: tuple[Tensor, Tensor], names: tuple[Tensor, Tensor], pair: GraphPair) -> Tensor:
    """Cross-entropy of picking namesakes among all targets or sources of the batch (Lin et al., COMMON, ICCV 2023).

    Before a node knows of the other graph. Mean over its namesakes of `−log p`, then over the nodes that have any.
    """
    inside = [(one[graph.mask], own[graph.mask]) for one, own, graph in zip(alone, names, (pair.source, pair.target))]
    (rows, left), (columns, right) = inside
    same = ((left[:, None] == right) & (left >= 0)[:, None]).to(rows.dtype)
    scores = rows @ columns.mT
    lost = [(scores.log_softmax(dim) * same).sum(dim) / same.sum(dim).clamp(min=1) for dim in (0, 1)]
    return -0.5 * torch.stack([one.sum() / same.any(dim).sum().clamp(min=1) for dim, one in enumerate(lost)]).sum()


def _judge_matchable(matchable: tuple[Tensor, Tensor], pair: GraphPair) -> Tensor:
    """Cross-entropy of what nodes say about having a partner, mean over the nodes of both graphs."""
    logits = torch.cat([one[graph.mask] for one, graph in zip(matchable, (pair.source, pair.target))])
    wanted = torch.cat([pair.truth.any(2)[pair.source.mask], pair.truth.any(1)[pair.target.mask]])
    return binary_cross_entropy_with_logits(logits, wanted.to(logits.dtype), reduction="sum") / max(1, len(logits))


LOSSES: dict[str, Callable[..., Loss]] = {
    "false_matching": false_matching,
    "permutation": permutation,
    "hungarian_attention": hungarian_attention,
    "offset": offset,
    "hamming": hamming,
    "contrastive": contrastive,
}
