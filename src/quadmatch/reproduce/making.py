"""One table or figure from its name to its files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from quadmatch.files import check_folder
from quadmatch.reproduce import ITEMS
from quadmatch.reproduce.items import Figure, Output, Settings, Table


def choose_item(name: str, rows: Sequence[str] | None = None) -> Table | Figure:
    """A table or figure by name; only the rows that are named, if any are."""
    if name not in ITEMS:
        raise ValueError(f"table must be one of {', '.join(ITEMS)}, or {ALL}; got {name!r}")
    item = ITEMS[name]
    if not rows:
        return item
    for row in rows:
        if row not in item.rows:
            raise ValueError(f"{name!r} has no row {row!r}; it has {', '.join(item.rows) or 'none'}")
    if isinstance(item, Figure):
        return replace(item, rows=tuple(rows))
    return replace(item, rows={row: item.rows[row] for row in rows})


ALL = "all"
"""In place of a name: everything."""


def reproduce_all(settings: Settings) -> Iterator[tuple[str, Output | Exception]]:
    """Everything, what gives results early first; what cannot be made, for want of data say, is not the end."""
    for name in settings.follow(list(ITEMS), lambda name: f"{name}, {ITEMS[name].about}"):
        try:
            yield name, reproduce_item(name, ITEMS[name], settings)
        except (ValueError, OSError, ImportError) as error:
            yield name, error


def reproduce_item(name: str, item: Table | Figure, settings: Settings) -> Output:
    """Make the table or figure, and write its files into the settings' folder."""
    check_folder(settings.out)
    stem = name_files(name, item, settings)
    if isinstance(item, Figure):
        output = item.make(replace(settings, rows=item.rows))
    else:
        output, stem = _make_rows(item, list(ITEMS[name].rows), stem, settings)
    write_output(stem, output, settings.out)
    return output


def name_files(name: str, item: Table | Figure, settings: Settings) -> str:
    """What its files are called: figures of another split than its own do not take the place of its record."""
    other = settings.split if settings.split != getattr(item, "split", None) else None
    return "-".join([name, *([other] if other else []), *(["quick"] if settings.quick else [])])


def _make_rows(table: Table, order: Sequence[str], stem: str, settings: Settings) -> tuple[Output, str]:
    """A table or some rows of it, and the name of its files.

    Rows of an earlier record stay beside the new ones; where they were measured otherwise, the new ones are
    written apart.
    """
    from quadmatch.reproduce.merging import Record, are_alike, keep_rows, read_record
    from quadmatch.reproduce.tables import make_table

    if settings.cluster is not None:
        from quadmatch.reproduce.sharing import share_rows

        share_rows(table, settings, settings.cluster)
    known = read_record(settings.out / f"{stem}.json") if len(table.rows) < len(order) else None
    apart = False

    def keep(made: Record) -> Record:
        nonlocal apart
        apart = known is not None and not are_alike(made, known)
        return made if known is None or apart else keep_rows(made, known, order)

    output = make_table(table, settings, keep)
    if apart:
        settings.say(f"{stem}.json was measured otherwise and stays as it is; these rows are in {stem}-rows.json")
    return output, f"{stem}-rows" if apart else stem


def write_output(stem: str, output: Output, folder: Path) -> list[Path]:
    """Write STEM.json and STEM.md, and of a picture STEM.png and STEM.svg; the files that were written."""
    from quadmatch.drawing.canvas import save_figure
    from quadmatch.drawing.tables import write_markdown
    from quadmatch.files import write_file, write_json
    from quadmatch.machine import describe_origin

    folder.mkdir(parents=True, exist_ok=True)
    parts = [f"# {output.title}"]
    written = []
    if output.picture is not None:
        written = [save_figure(output.picture, folder / f"{stem}.{kind}") for kind in ("png", "svg")]
        parts.append(f"![{output.title}]({stem}.png)")
    parts += [write_markdown(output.lines)] if output.lines else []
    text = "\n\n".join([*parts, output.caption]) + "\n"
    record = {"title": output.title, **output.record, **describe_origin()}
    return [*written, write_json(folder / f"{stem}.json", record), write_file(folder / f"{stem}.md", text.encode())]
