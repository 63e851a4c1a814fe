"""One file a paper, each only names its parts."""
