"""What commands print besides their results, and results as JSON instead of tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only results, warnings and errors: no progress.")]
Json = Annotated[
    Path | None, typer.Option(help="Also write the result to this file as JSON; -: print that instead of the table.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
STANDARD = Path("-")
"""A file of this name is the standard output."""


def choose_say(quiet: bool) -> Callable[[str], None]:
    """What prints lines that tell of progress, and nothing where quiet was asked for."""

    def say(line: str) -> None:
        if not quiet:
            typer.echo(line)

    return say


def check_json(path: Path | None) -> None:
    """Refuse a file that cannot be written, before the work that it is to hold."""
    from quadmatch.files import check_target

    if path not in (None, STANDARD):
        check_target(path)


def write_result(path: Path | None, content: Any, show: Callable[[], object]) -> None:
    """Show a result as a table, or print it as JSON if that was asked for; and write it to a file."""
    from quadmatch.files import write_json

    if path == STANDARD:
        print_json(content)
        return
    show()
    if path is not None:
        write_json(path, content)


def print_json(content: Any) -> None:
    """Readable JSON on the standard output."""
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False))


@contextmanager
def show_step(quiet: bool) -> Iterator[Callable[[str], None]]:
    """A line that says what is being done, on a terminal only, and that is gone in the end."""
    from rich.console import Console

    console = Console(stderr=True, quiet=quiet)
    with console.status("") as line:
        yield lambda text: line.update(f"{text} …")
