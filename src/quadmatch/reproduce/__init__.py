"""Tables and figures that one command prints."""
