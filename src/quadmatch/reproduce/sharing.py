"""Rows of a table shared out over the workers of a cluster; one process then finds them done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from quadmatch.launch.calls import call_on_ray
from quadmatch.launch.cluster import Cluster
from quadmatch.reproduce.items import Settings, Table
from quadmatch.reproduce.reuse import name_run
from quadmatch.reproduce.tables import Step, list_steps, name_turn, reproduce_row


def share_rows(table: Table, settings: Settings, cluster: Cluster) -> None:
    """Train and evaluate the rows on a cluster; runs and evaluations are then in the settings' folder."""
    groups = list(group_by_run(table, list_steps(table, settings), settings).values())
    # Workers may have another working folder, and what they say is not seen.
    root = settings.root and settings.root.absolute()
    silent = replace(settings, out=settings.out.absolute(), root=root, say=_say_nothing, cluster=None)
    names = [", ".join(label + name_turn(table, seed) for label, seed in group) for group in groups]
    calls = [(table, group, silent) for group in groups]
    for number, (place, _) in enumerate(call_on_ray(reproduce_steps, calls, names, cluster), 1):
        settings.say(f"{number} of {len(groups)} done: {names[place]}")


def group_by_run(table: Table, steps: Sequence[Step], settings: Settings) -> dict[str, list[Step]]:
    """Steps that use one run together: it is trained once, by whoever has them all."""
    groups: dict[str, list[Step]] = {}
    for label, seed in steps:
        row = table.rows[label]
        name = f"model {row.model}" if row.experiment is None else f"run {name_run(row, seed or 0, settings)}"
        groups.setdefault(name, []).append((label, seed))
    return groups


def reproduce_steps(table: Table, steps: Sequence[Step], settings: Settings) -> None:
    """Train and evaluate some steps, or find them done."""
    for label, seed in steps:
        reproduce_row(table, table.rows[label], seed, settings)


def _say_nothing(line: str) -> None:
    """For workers, whom nobody hears."""
