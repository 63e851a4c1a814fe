"""Several processes or machines that work together; nothing else here imports what they are joined by."""
