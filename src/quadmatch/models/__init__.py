"""Trained models on disk: runs, checkpoints, exports, and those that ship."""
