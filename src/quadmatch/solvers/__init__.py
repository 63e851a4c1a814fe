"""Scores and a mask in, an assignment out: pure functions."""
