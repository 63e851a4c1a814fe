"""Solvers of the quadratic constraint: Frank–Wolfe, soft and hard."""
