"""For people with graphs: two matrices in, a match out."""
