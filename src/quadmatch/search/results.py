"""From checked matrices to results through the compiled search, all pairs of a list at once."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from quadmatch.inputs import Inputs, check_numbers, to_float64
from quadmatch.result import Array, MatchResult
from quadmatch.search.pairs import Pairs, lay_end_to_end, weigh_pairs
from quadmatch.search.strategy import Found, search

Matrix = NDArray[np.float64]


def search_matches(inputs: Inputs, weight: float | None, threshold: float, best: bool) -> list[MatchResult]:
    """One result a pair, in the caller's order of nodes."""
    left, right = _unwrap(inputs.sources), _unwrap(inputs.targets)
    linears = None if inputs.unaries is None else _unwrap(inputs.unaries)
    turned = np.array([len(a) > len(b) for a, b in zip(left, right)], dtype=bool)
    for place in np.flatnonzero(turned):
        left[place], right[place] = right[place], left[place]
    if linears is not None:
        linears = [one.T if turn else one for one, turn in zip(linears, turned)]
    pairs = lay_end_to_end(left, right, linears)
    _check(pairs, inputs, turned)
    if linears is None:
        pairs.weights[:] = 1.0 if weight is None else weight
    else:
        weigh_pairs(pairs, -1.0 if weight is None else weight, threshold)
    found = search(pairs, threshold, best)
    return _split(inputs, pairs, found, turned)


def _unwrap(matrices: list[Any]) -> list[NDArray[Any]]:
    """Tensors to arrays; laying all of them end to end brings every format to double precision."""
    return [to_float64(one) if isinstance(one, torch.Tensor) else one for one in matrices]


def _check(pairs: Pairs, inputs: Inputs, turned: NDArray[np.bool_]) -> None:
    """Finite numbers and no self loops; the matrix that has another is named as the caller knows it."""

    def name(side: str, place: int) -> str:
        turn = {"a": "b", "b": "a", "unary": "unary"}[side] if turned[place] else side
        return turn if inputs.single else f"{turn}[{place}]"

    small, large = pairs.sizes.T
    for flat, size, side in ((pairs.sources, small, "a"), (pairs.targets, large, "b")):
        check_numbers(flat, size**2, partial(name, side))
        nodes = np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size, size)
        starts = np.repeat(np.cumsum(size**2) - size**2, size)
        diagonal = flat[starts + nodes * (np.repeat(size, size) + 1)]
        if diagonal.any():
            loop = int(np.flatnonzero(diagonal)[0])
            place = int(np.repeat(np.arange(len(size)), size)[loop])
            raise ValueError(
                f"{name(side, place)} must have no self loop; got {diagonal[loop]:g} at node {nodes[loop]}. "
                "What a node is like by itself belongs in unary; quadratic_assignment takes a diagonal"
            )
    check_numbers(pairs.linears, small * large, partial(name, "unary"))


def _split(inputs: Inputs, pairs: Pairs, found: Found, turned: NDArray[np.bool_]) -> list[MatchResult]:
    """Views of a few large arrays: arrays made for each of many small pairs would cost more than matching."""
    small, large = pairs.sizes.T
    owner = np.repeat(np.arange(len(small)), large)
    node = np.arange(len(owner)) - np.repeat(np.cumsum(large) - large, large)
    real = (node < small[owner]) & (found.permutations < large[owner])
    owner, node, partner, scores = owner[real], node[real], found.permutations[real], found.scores[real]
    if turned.any():
        flip = turned[owner]
        node, partner = np.where(flip, partner, node), np.where(flip, node, partner)
        order = np.lexsort((node, owner))
        owner, node, partner, scores = owner[order], node[order], partner[order], scores[order]
    rows, columns = np.where(turned, large, small), np.where(turned, small, large)
    starts = np.cumsum(rows * columns) - rows * columns
    flat = np.zeros(int((rows * columns).sum()))
    flat[starts[owner] + node * columns[owner] + partner] = 1
    # One conversion for all pairs; cutting only takes views.
    parts = [_convert(inputs, one) for one in (np.stack((node, partner), 1), scores, flat)]
    counts = np.bincount(owner, minlength=len(small))
    ends = np.cumsum(counts)
    lists = (ends - counts, ends, starts, starts + rows * columns, rows, columns)
    return _cut(inputs, parts, [one.tolist() for one in (*lists, found.objectives, found.steps)])


def _cut(inputs: Inputs, parts: list[Array], lists: list[list[Any]]) -> list[MatchResult]:
    """Results from where each pair's matches begin and end, and its matrix, its shape, objective and steps."""
    pairs, scores, flat = parts
    return [
        MatchResult(pairs[low:high], scores[low:high], flat[a:b].reshape(n, m), worth, steps, True, *graphs)
        for low, high, a, b, n, m, worth, steps, *graphs in zip(*lists, inputs.sources, inputs.targets)
    ]


def _convert(inputs: Inputs, values: NDArray[Any]) -> Array:
    """As the caller's arrays: numpy or torch, single or double precision, on their device."""
    whole = values.dtype.kind == "i"
    if inputs.device is not None:
        return torch.from_numpy(values).to(inputs.device, torch.int64 if whole else inputs.kind)
    return values if whole or inputs.kind == torch.float64 else values.astype(np.float32)
