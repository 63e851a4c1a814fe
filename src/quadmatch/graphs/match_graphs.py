"""match_graphs: two graphs, or two lists of graphs, to matches."""

from __future__ import annotations

import math
from typing import Any, Literal

from quadmatch.graphs.assignment_options import QUALITIES
from quadmatch.graphs.inputs import read_inputs
from quadmatch.graphs.interruption import hearing_ctrl_c
from quadmatch.result import MatchResult

Method = Literal["auto", "frank_wolfe", "frank_wolfe_hard", "hungarian", "spectral", "rrwm"]
METHODS = ("auto", "frank_wolfe", "frank_wolfe_hard", "hungarian", "spectral", "rrwm")


@hearing_ctrl_c()
def match_graphs(
    a: Any,
    b: Any,
    unary: Any = None,
    *,
    method: Method = "auto",
    partial: bool = False,
    threshold: float = 0.7,
    weight: float | None = None,
    quality: Literal["fast", "standard", "best"] = "standard",
    temperature: float = 0.1,
    time_limit: float | None = None,
    progress: bool = False,
) -> MatchResult | list[MatchResult]:
    """Match the nodes of `a` [n, n] to those of `b` [m, m] so that edges and node similarities agree.

    It minimises weight·Σ (A_ij − B_p(i)p(j))² − (1 − weight)·Σ unary_ip(i) over one-to-one matches p. Every
    node of the smaller graph is matched, and the sums run over matched nodes. Graphs are adjacency matrices,
    weighted or not, directed or not (numpy, torch, scipy sparse, rows of numbers), or networkx graphs (nodes in
    the order of `graph.nodes`, attribute `weight`). Lists of graphs are matched pair by pair, one result each.

    - `unary` [n, m]: similarities of nodes, larger is more alike; any unit.
    - `method`: `auto` chooses by the size of the pair; `frank_wolfe` gives a soft assignment through which
      gradients flow to every tensor; the others are the solvers of that name.
    - `partial`: nodes may stay unmatched; a match must keep more than `threshold` of the edges at its nodes.
    - `weight`: how much edges count against `unary`; by default both matter alike, whatever their units.
    - `quality`: `fast` makes the shortest search; `best` takes far longer than `standard` and finds better
      matches of hard pairs.
    - `temperature`: of `frank_wolfe`.
    - `time_limit`: seconds, of `auto`, after which the best so far is returned, its `converged` False; a step that
      has begun is finished, and compiling is not counted.
    - `progress`: say every second on stderr what `auto` is doing.

    Graphs with names (networkx, a pandas table) give `result.named_pairs`. A search for which there is not
    enough memory is refused before it begins. numpy in gives numpy out; a tensor anywhere gives tensors on its device.
    """
    _check_options(method, threshold, weight, quality, temperature)
    for name, given in (("partial", partial), ("time_limit", time_limit is not None), ("progress", progress)):
        if given and method != "auto":
            raise ValueError(f"{name} needs method 'auto'; got {method!r}")
    if time_limit is not None and not 0 <= time_limit < math.inf:
        raise ValueError(f"time_limit must be 0 or more seconds, or None for no limit; got {time_limit}")
    inputs = read_inputs(a, b, unary)
    if not inputs.sources:
        return []
    if method == "auto":
        from quadmatch.graphs.results import search_matches

        results = search_matches(inputs, weight, threshold if partial else 0.0, quality, time_limit, progress)
    else:
        from quadmatch.graphs.by_name import match_padded

        results = match_padded(inputs, method, weight, temperature)
    for (side, place), labels in inputs.labels.items():
        results[place].names[side] = labels
    return results[0] if inputs.single else results


def _check_options(method: str, threshold: float, weight: float | None, quality: str, temperature: float) -> None:
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}")
    if quality not in QUALITIES:
        raise ValueError(f"quality must be one of {', '.join(QUALITIES)}; got {quality!r}")
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold must be above 0 and at most 1; got {threshold}")
    if weight is not None and not 0 <= weight <= 1:
        raise ValueError(f"weight must be from 0 to 1, or None for a balance; got {weight}")
    if not 0 < temperature < math.inf:
        raise ValueError(f"temperature must be above 0 and finite; got {temperature}")
