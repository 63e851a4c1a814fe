"""For people with pictures of their own: from files to a match and its JSON."""
