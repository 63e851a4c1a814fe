"""Learnable parts that know no method."""
