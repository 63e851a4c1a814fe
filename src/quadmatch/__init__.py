"""Graph matching under a quadratic constraint."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quadmatch.graph import Graph as Graph
    from quadmatch.graph import GraphPair as GraphPair
    from quadmatch.graph import collate as collate
    from quadmatch.graphs.match_graphs import match_graphs as match_graphs
    from quadmatch.graphs.quadratic_assignment import quadratic_assignment as quadratic_assignment
    from quadmatch.layers.quadratic_constraint import QuadraticConstraint as QuadraticConstraint
    from quadmatch.losses import LOSSES as LOSSES
    from quadmatch.matcher import Matcher as Matcher
    from quadmatch.matching import Features as Features
    from quadmatch.matching import Matching as Matching
    from quadmatch.methods import METHODS as METHODS
    from quadmatch.models.load import load as load
    from quadmatch.own_images.transfer import transfer as transfer
    from quadmatch.result import MatchResult as MatchResult

HOMES = {
    "LOSSES": "losses",
    "METHODS": "methods",
    "Features": "matching",
    "Graph": "graph",
    "GraphPair": "graph",
    "MatchResult": "result",
    "Matcher": "matcher",
    "Matching": "matching",
    "QuadraticConstraint": "layers.quadratic_constraint",
    "collate": "graph",
    "load": "models.load",
    "match_graphs": "graphs.match_graphs",
    "quadratic_assignment": "graphs.quadratic_assignment",
    "transfer": "own_images.transfer",
}
"""Where each public name is defined: it is imported when it is first used, and with it what it needs."""

__all__ = sorted(HOMES)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module 'quadmatch' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"quadmatch.{HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *HOMES})
