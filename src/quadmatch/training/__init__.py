"""The training loop, its samples, its optimiser and its log."""
