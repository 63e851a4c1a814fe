"""The page on localhost: a small server and static files, with no outside host."""
