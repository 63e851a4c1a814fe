"""Solvers that know a pair only by a product with its affinities (Lawler's form)."""
