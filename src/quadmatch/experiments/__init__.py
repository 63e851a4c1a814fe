"""Experiments as TOML files: what they may say, and what is built from them."""
