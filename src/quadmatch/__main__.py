"""`python -m quadmatch` is `quadmatch`."""

from quadmatch.cli import app

app(prog_name="quadmatch")
