"""Lines of `match-many` as a Parquet table, for programs that read columns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from quadmatch.files import check_target, replace_file
from quadmatch.own_images.answer import dump_line

ROWS = 1024
"""Pairs in a part of the table that is read and written at once."""
FILES = ("image_a", "image_b", "points_file_a", "points_file_b")
WORDS = ("precision", "model", *FILES, "orientation", "orientation_asked", "error")
FLAGS = ("constraint", "partial")
COUNTS = ("row", "format", "detect")
INDICES = ("unmatched_a", "unmatched_b", "size_a", "size_b")
NUMBERS = ("scores", "box_a", "box_b")
TEXTS = ("names_a", "names_b", "warnings")
PLACES = ("coordinates", "points_a", "points_b")


def is_parquet(out: Path) -> bool:
    """Whether a file is to be a table, by its name."""
    return out.suffix.lower() == ".parquet"


def name_lines(out: Path) -> Path:
    """The file of lines that a table is made of; it is there while the work is not finished."""
    return out.with_name(f"{out.name}.lines")


def build_schema() -> Any:
    """The columns of a table: the fields of a line, whatever came of its pair, and `error`."""
    import pyarrow as pa

    kinds = {"pairs": pa.list_(pa.list_(pa.int64())), "matchable": pa.float64()}
    for names, kind in (
        (WORDS, pa.string()),
        (FLAGS, pa.bool_()),
        (COUNTS, pa.int64()),
        (INDICES, pa.list_(pa.int64())),
        (NUMBERS, pa.list_(pa.float64())),
        (TEXTS, pa.list_(pa.string())),
        (PLACES, pa.list_(pa.list_(pa.float64()))),
    ):
        kinds |= dict.fromkeys(names, kind)
    return pa.schema([(name, kinds[name]) for name in sorted(kinds, key=lambda name: (name != "row", name))])


def write_parquet(lines: Path, out: Path) -> None:
    """The table of a file of lines, whole or not at all; the same lines give the same bytes."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    schema = build_schema()
    with lines.open("rb") as source, replace_file(out) as file, ParquetWriter(file, schema) as writer:
        while part := [json.loads(line) for line in islice(source, ROWS)]:
            writer.write_table(pa.Table.from_pylist(part, schema))


def read_parquet(out: Path) -> Iterator[bytes]:
    """The lines of a table, as far as it tells what they were made of; what is no such table is refused."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(out) as table:
            if table.schema_arrow != build_schema():
                raise ValueError("other columns")
            for part in table.iter_batches(ROWS):
                for line in part.to_pylist():
                    present = {key: value for key, value in line.items() if key != "error" or value is not None}
                    yield dump_line(present).encode()
    except (pa.ArrowException, ValueError, OSError):
        raise ValueError(f"{out} is not a file that this command wrote: name another") from None


def check_parquet(out: Path) -> None:
    """Refuse a table that cannot be written, before the work that it is to hold."""
    check_target(out)
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ImportError(f"{out}: a Parquet table needs pyarrow: pip install pyarrow") from error
