"""The page of benchmarks: what the newest records say to a user, and every record on a page of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]
OPENING = """# Benchmarks

What the newest records say, question by question. Each figure stands beside a peer.
Both were measured in the same run on the same machine.
Times are processor seconds of one thread unless the row says otherwise.
They depend on the machine, so compare the ratios.
`quadmatch bench solvers` and `quadmatch bench images` measure the same on your machine.
[Time and memory](docs/scaling.md) says how cost grows with the number of nodes.
"""
FAQ, GAP = "scipy's FAQ", "percent above the best known value"
QUESTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Graphs and quadratic assignment": {
        "match_graphs, one call": ("Many small pairs of graphs in one call", "a loop over scipy"),
        "QAPLIB, quality best: mean gap": (
            'QAPLIB, `quality="best"`: percent above the best known value',
            "scipy's FAQ",
        ),
        "QAPLIB, quality best: processor": ('QAPLIB, `quality="best"`: time', FAQ),
        "QAPLIB, quality fast: mean gap": (
            'QAPLIB, `quality="fast"`: percent above the best known value',
            "scipy's FAQ",
        ),
        "QAPLIB, quality fast: processor": ('QAPLIB, `quality="fast"`: time', FAQ),
        "match_graphs, correlated": ("Two noisy copies of a random graph, edges only: % of nodes right", FAQ),
        "match_graphs, Delaunay": (
            "Large planar graphs with noisy node features: % of nodes right",
            "the features alone",
        ),
        "sinkhorn": ("`sinkhorn`: time", "pygmtools"),
        "rrwm": ("`rrwm`", "pygmtools"),
    },
    "Your own photographs": {
        "match two": ("Two photographs matched: seconds on the clock", ""),
        "detected keypoints": ("Detected points that are found again: %", "SIFT's"),
        "photo warps": ("Two bent views of one photograph: % of points right", "SIFT"),
        "corner of a house": ("A house from another side: % of points right", "SIFT"),
        "serve, ": ("The page: matches a second, eight clients at once", "one by one"),
    },
    "Training and evaluation": {
        "images a second": ("Training: images a second, features only", ""),
        "step at level local": ("A training step at level `local`: seconds", "level `full`"),
        "evaluate the pairs": ("Evaluation with features computed once: seconds", "computed for each pair"),
    },
}
"""For each question: how the names of its rows begin, what it asks in words, and what stands beside it."""
OTHER_MODELS = re.compile(r"model (?!default)")
"""Rows of models other than the default: page "Models" compares them."""


def read_records(folder: Path) -> dict[str, Any]:
    """All records by name, the newest first."""
    paths = sorted(folder.glob("*.json"), reverse=True)
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}


def find_newest(records: Mapping[str, Any], beginning: str) -> tuple[str, list[Row]]:
    """The newest record with rows whose names begin so, and these rows; no name if there is none."""
    for name, record in records.items():
        rows = [row for row in record["rows"] if row["name"].startswith(beginning)]
        rows = [row for row in rows if not OTHER_MODELS.search(row["name"])]
        if rows:
            return name, rows
    return "", []


def write_page(records: Mapping[str, Any]) -> str:
    """The page as Markdown."""
    parts = [OPENING]
    for topic, questions in QUESTIONS.items():
        lines = ["| what | size | quadmatch | beside it | |", "|---|---|---|---|---|"]
        for beginning, (words, peer) in questions.items():
            _, rows = find_newest(records, beginning)
            lines += list(_tabulate(rows, words, peer))
        parts += [f"## {topic}", "\n".join(lines)]
    if missed := list(list_missed(records)):
        parts += ["## Bounds that are missed", "The project sets itself bounds. The newest measurement misses these:"]
        parts.append("\n".join(missed))
    parts += ["## The records", "Each has its date, command, hardware and commit, and figures beside those above."]
    parts.append("\n".join(_list_records(records)))
    return "\n\n".join(parts) + "\n"


def list_missed(records: Mapping[str, Any]) -> Iterator[str]:
    """A line for each bound that the newest record with such a bound misses."""
    known: dict[str, str] = {}
    for name, record in records.items():
        for row in record["rows"]:
            if "required" in row and known.setdefault(row["name"], name) == name and not row["met"]:
                figure = next(row[key] for key in ("ratio", "ours", "ours_seconds") if key in row)
                words = f"{figure:.3g}, the bound is {row['required']:.3g}"
                yield f"- {row['name']}, {row['size']}: {words} ([record](docs/records/{name}.md))"


def _tabulate(rows: Sequence[Row], words: str, peer: str) -> Iterator[str]:
    for row in rows:
        ours, beside = (show_value(row, side) for side in ("ours", "peer"))
        detail = _tell_apart(row["name"]) if len({one["name"] for one in rows}) > 1 else ""
        cells = [f"{words} ({detail})" if detail else words, row["size"].replace("0.0223607", "0.022"), ours]
        yield f"| {' | '.join(cells)} | {f'{beside} ({peer})' if beside else ''} | {compare(row)} |"


def _tell_apart(name: str) -> str:
    """The part of a row's name that tells it from others of one question."""
    short = re.sub(
        r": % right.*|, model default|images a second at |match two |photo warps, |corner of a house, ", "", name
    )
    return re.sub(r"^rrwm(, )?", "", short)


def show_value(row: Row, side: str) -> str:
    """The figure of one side with its unit."""
    if f"{side}_seconds" in row:
        return show_seconds(row[f"{side}_seconds"])
    if side not in row:
        return ""
    if "bytes" in row["name"]:
        return f"{row[side] / 1e6:,.0f} MB"
    return f"{row[side]:.3g}" if row[side] < 1000 else f"{row[side]:,.0f}"


def show_seconds(seconds: float) -> str:
    """A time in a unit that needs no zeros."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.2g} µs"


def compare(row: Row) -> str:
    """Two times in words; nothing for other figures, which speak for themselves."""
    if not {"ours_seconds", "peer_seconds"} <= row.keys():
        return ""
    ratio = row["peer_seconds"] / row["ours_seconds"]
    return f"{ratio:.3g} times as fast" if ratio >= 1 else f"takes {1 / ratio:.3g} times as long"


def _list_records(records: Mapping[str, Any]) -> Iterator[str]:
    for name, record in records.items():
        command, hardware = (record["origin"][key] for key in ("command", "hardware"))
        yield f"- [{name[:10]} {name[11:13]}:{name[13:15]}](docs/records/{name}.md): `{command}`, {hardware}"
