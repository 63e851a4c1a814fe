"""Image and points in, features out."""
