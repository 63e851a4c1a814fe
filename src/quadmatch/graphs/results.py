"""From checked matrices to results through the compiled search, all pairs of a list at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from quadmatch.graphs.edge_lists import advise_on_edges
from quadmatch.graphs.inputs import Inputs, Matrix, to_float64
from quadmatch.graphs.memory import check_memory
from quadmatch.graphs.progress import tell_progress
from quadmatch.result import Array, MatchResult
from quadmatch.solvers.search.pairs import Pairs, lay_end_to_end, weigh_stoppably
from quadmatch.solvers.search.strategy import Found, search
from quadmatch.solvers.search.units import Peaks, Units, find_peaks, scale_pairs

LARGEST = 1e100
"""Beyond that, squares of squares leave the range of double precision."""
CORNER = 24
"""Nodes of the part that is matched first where time is limited: more than those for which all is one loop."""


def search_matches(
    inputs: Inputs, weight: float | None, threshold: float, quality: str, time_limit: float | None, progress: bool
) -> list[MatchResult]:
    """One result a pair, in the caller's order of nodes."""
    with tell_progress(progress) as report:
        number, needed = len(inputs.sources), check_memory(inputs) / 2**30
        report(f"matching {number} {'pair' if number == 1 else 'pairs'}, with about {needed:.2f} GB of memory")
        if time_limit is not None:
            _compile(inputs, weight, threshold, quality)
        deadline = np.inf if time_limit is None else time.perf_counter() + time_limit
        layout = lay_out(inputs, weight, threshold, deadline)
        found = search(layout.pairs, threshold, quality, deadline=deadline, report=report)
        return split_results(inputs, layout, found)


def _compile(inputs: Inputs, weight: float | None, threshold: float, quality: str) -> None:
    """Match small graphs of the same kind, so that loops are compiled before time is counted."""
    rng = np.random.default_rng(0)
    n, m = (min(CORNER, max(map(len, side))) for side in (inputs.sources, inputs.targets))
    graphs: list[Matrix] = [(1 - np.eye(size)) * rng.random((size, size)) for size in (n, m)]
    unaries: list[Matrix] | None = None if inputs.unaries is None else [rng.random((n, m))]
    small = replace(inputs, sources=graphs[:1], targets=graphs[1:], unaries=unaries)
    search(lay_out(small, weight, threshold).pairs, threshold, quality)


class Layout(NamedTuple):
    """Pairs as solvers take them: the smaller graph first, weighted, in units that can be squared."""

    pairs: Pairs
    turned: NDArray[np.bool_]
    """In which pairs the smaller graph is the second."""
    units: Units


def lay_out(inputs: Inputs, weight: float | None, threshold: float = 0.0, deadline: float = np.inf) -> Layout:
    """The pairs, checked, scaled and weighted; from the `deadline` on, a balance is found with less care."""
    left, right = (_unwrap(inputs, side) for side in (inputs.sources, inputs.targets))
    linears = None if inputs.unaries is None else _unwrap(inputs, inputs.unaries)
    turned = np.greater(*inputs.sizes)
    for index in np.flatnonzero(turned):
        left[index], right[index] = right[index], left[index]
    if linears is not None:
        linears = [one.T if turn else one for one, turn in zip(linears, turned)]
    pairs = lay_end_to_end(left, right, linears)
    peaks = find_peaks(pairs)
    _check(pairs, peaks, inputs, turned)
    units = scale_pairs(pairs, peaks, together=weight is not None and 0 < float(weight) < 1)
    pairs.weights[:] = 1.0 if weight is None else weight
    if linears is not None:
        weigh_stoppably(pairs, weight is None, threshold, deadline)
    return Layout(pairs, turned, units)


def _unwrap(inputs: Inputs, matrices: list[Any]) -> list[NDArray[Any]]:
    """Tensors, if there are any, to arrays; laying all end to end brings every format to double precision."""
    if inputs.device is None:
        return list(matrices)
    return [to_float64(one) if isinstance(one, torch.Tensor) else one for one in matrices]


def _check(pairs: Pairs, peaks: Peaks, inputs: Inputs, turned: NDArray[np.bool_]) -> None:
    """Finite numbers and no self loops; the matrix that has another is named as the caller knows it."""

    def name(side: str, index: int) -> str:
        turn = {"a": "b", "b": "a", "unary": "unary"}[side] if turned[index] else side
        return turn if inputs.single else f"{turn}[{index}]"

    small, large = pairs.sizes.T
    places = _locate_diagonals(small)
    for flat, peak, size, side in zip(pairs[2:4], peaks, (small, large), "ab"):
        _check_numbers(flat, peak, partial(name, side))
        if side == "b" and not (small == large).all():
            places = _locate_diagonals(large)
        diagonal = flat[places]
        if diagonal.any():
            loop = int(np.flatnonzero(diagonal)[0])
            index = int(np.repeat(np.arange(len(size)), size)[loop])
            start, node = int((size[:index] ** 2).sum()), loop - int(size[:index].sum())
            advice = advise_on_edges(flat[start:][: size[index] ** 2].reshape(size[index], -1))
            raise ValueError(
                f"{name(side, index)} must have no self loop; got {diagonal[loop]:g} at node {node}. "
                "What a node is like by itself belongs in unary; quadratic_assignment takes a diagonal"
                f"{advice if size[index] == 2 else ''}"
            )
    _check_numbers(pairs.linears, peaks.linears, partial(name, "unary"))


def _check_numbers(flat: NDArray[np.float64], peaks: NDArray[np.float64], name: Callable[[int], str]) -> None:
    """All matrices, laid end to end, hold finite numbers that can be squared; a peak is the largest of a matrix."""
    if (peaks <= LARGEST).all():
        return
    bad = int(np.flatnonzero(~(np.abs(flat) <= LARGEST))[0])
    which = int(np.flatnonzero(~(peaks <= LARGEST))[0])
    needs = "finite" if not np.isfinite(flat[bad]) else f"at most {LARGEST:g} in size"
    raise ValueError(f"{name(which)} must be {needs}; got {flat[bad]}")


def _locate_diagonals(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the entries of the diagonals are in square matrices that lie end to end."""
    squares = sizes * sizes
    before = np.cumsum(squares) - squares - (np.cumsum(sizes) - sizes) * (sizes + 1)
    return np.repeat(before, sizes) + np.arange(int(sizes.sum())) * np.repeat(sizes + 1, sizes)


def split_results(inputs: Inputs, layout: Layout, found: Found) -> list[MatchResult]:
    """One result a pair: views of a few large arrays, as making some for each pair would cost more than matching."""
    pairs, turned, units = layout
    owner, node, partner, fit = _list_matches(pairs, found, turned)
    # One conversion for all pairs; from here on there are only views.
    matches, scores = (_convert(inputs, array) for array in (np.stack((node, partner), 1), fit))
    ends = np.cumsum(np.bincount(owner, minlength=len(turned))).tolist()
    objectives = (found.objectives * units.restore(pairs)).tolist()
    numbers = objectives, found.steps.tolist(), found.converged.tolist()
    shapes = zip(*(size.tolist() for size in inputs.sizes))
    every = zip((0, *ends), ends, shapes, *numbers, inputs.sources, inputs.targets)
    return [
        MatchResult(matches[begin:end], scores[begin:end], shape, objective, steps, converged, source, target)
        for begin, end, shape, objective, steps, converged, source, target in every
    ]


def _list_matches(pairs: Pairs, found: Found, turned: NDArray[np.bool_]) -> tuple[NDArray[Any], ...]:
    """Pair, source node, target node and score of all matches, in the caller's order."""
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
    return owner, node, partner, scores


def _convert(inputs: Inputs, values: NDArray[Any]) -> Array:
    """As the caller's arrays: numpy or torch, single or double precision, on their device."""
    whole = values.dtype.kind == "i"
    if inputs.device is not None:
        return torch.from_numpy(values).to(inputs.device, torch.int64 if whole else inputs.kind)
    return values if whole or inputs.kind == torch.float64 else values.astype(np.float32)
