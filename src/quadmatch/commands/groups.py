"""What all commands have in common: how they are listed, explained, and end where something is wrong."""

from __future__ import annotations

import os
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

FAULTS = (ValueError, TypeError, OSError, ImportError, MemoryError)
"""How this program says that an input is wrong."""
SIGNS = ("DefaultCPUAllocator", "out of memory")
"""How torch says in a RuntimeError that there is too little memory."""
FULL = "the memory of this machine does not suffice: fewer keypoints, smaller pictures or fewer pairs at once need less"
READERS = ("json", "pathlib", "csv", "tomllib", "PIL", "tarfile", "zipfile", "safetensors")
"""Modules that read files and paths: what they raise, of whatever kind, is about one."""


def _hide_kinds(parameters: list[Any]) -> list[Any]:
    """Parameters whose help says of no flag that a value follows it."""
    for one in parameters:
        if getattr(one, "is_flag", False):
            one.metavar = ""
    return parameters


class Command(TyperCommand):
    """A command whose flags are flags in its help."""

    def get_params(self, context: Any) -> list[Any]:
        """All parameters, `--help` among them."""
        return _hide_kinds(super().get_params(context))


class Commands(TyperGroup):
    """Says what is wrong with an input in one line; QUADMATCH_TRACEBACK=1 shows where it was found."""

    def get_params(self, context: Any) -> list[Any]:
        """All parameters, `--help` among them."""
        return _hide_kinds(super().get_params(context))

    def parse_args(self, context: Any, words: list[str]) -> list[str]:
        """Without any word, help was asked for."""
        return super().parse_args(context, words or ["--help"])

    def invoke(self, context: Any) -> Any:
        """Run the command that the words name."""
        try:
            return super().invoke(context)
        except BrokenPipeError:  # Whoever reads has seen enough, as `head` does.
            raise
        except Exception as error:
            full = _is_of_memory(error)
            if os.environ.get("QUADMATCH_TRACEBACK") or not (full or _is_of_input(error)):
                raise
            typer.echo(f"error: {FULL if full else str(error) or type(error).__name__}", err=True)
            raise typer.Exit(1) from None


def _is_of_memory(error: Exception) -> bool:
    """Whether torch found too little memory: of a processor, which it tells in words alone, or of a device."""
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in SIGNS)


def _is_of_input(error: Exception) -> bool:
    """Whether an error is of what the user gave, not of this program: by its kind, or by who found it."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    finder = "" if place is None else str(place.tb_frame.f_globals.get("__name__"))
    return isinstance(error, FAULTS) or finder.partition(".")[0] in READERS
