"""Graph matching under a quadratic constraint."""

from quadmatch.graph import Graph, GraphPair, collate
from quadmatch.layers.quadratic_constraint import QuadraticConstraint
from quadmatch.losses import LOSSES
from quadmatch.match_graphs import match_graphs
from quadmatch.matcher import Matcher
from quadmatch.matching import Features, Matching
from quadmatch.methods import METHODS
from quadmatch.methods.qcdgm import QCDGM
from quadmatch.quadratic_assignment import quadratic_assignment
from quadmatch.result import MatchResult
from quadmatch.shipped import load

__all__ = [
    "LOSSES",
    "METHODS",
    "QCDGM",
    "Features",
    "Graph",
    "GraphPair",
    "MatchResult",
    "Matcher",
    "Matching",
    "QuadraticConstraint",
    "collate",
    "load",
    "match_graphs",
    "quadratic_assignment",
]
__version__ = "0.1.0"
