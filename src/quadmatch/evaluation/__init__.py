"""How well a matcher matches a data set: counts, scores, tables."""
