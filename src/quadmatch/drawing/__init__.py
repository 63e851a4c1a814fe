"""Matches, curves and matrices as pictures, and tables as text."""
