"""Data sets: each a function from a folder and a split to a list of annotations."""
