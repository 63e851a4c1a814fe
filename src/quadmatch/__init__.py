"""Graph matching under a quadratic constraint."""

from quadmatch.graph import Graph, GraphPair, collate
from quadmatch.matching import Features, Matching

__all__ = ["Features", "Graph", "GraphPair", "Matching", "collate"]
__version__ = "0.1.0"
