"""What `quadmatch demo` shows: photographs and graphs, matched with and without the constraint."""
