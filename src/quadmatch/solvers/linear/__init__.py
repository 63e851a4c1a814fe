"""Solvers of linear assignment, soft and hard."""
