"""A room imports only rooms below it; the order is the picture in docs/design.md, written nowhere else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "quadmatch"
EXCEPTIONS = {("result", "drawing")}
"""`MatchResult.plot` draws itself, as users expect; it imports the drawing when it is called."""


def read_floors() -> dict[str, int]:
    """The floor of each room: the lines of the picture from the top, counted from the lowest."""
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    picture = re.search(r"```rooms\n(.*?)```", text, re.DOTALL)
    assert picture, "docs/design.md has no picture of the rooms"
    lines = [line.split("  ")[0].split() for line in picture[1].splitlines() if line.strip()]
    return {room: len(lines) - number for number, rooms in enumerate(lines) for room in rooms}


def list_imports(file: Path) -> Iterator[str]:
    """The rooms that a file imports, also where it does so only inside a function or for types."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] if "." in node.module else [f"{node.module}.{one.name}" for one in node.names]
        elif isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        else:
            continue
        for name in names:
            package, _, rest = name.partition(".")
            if package == "quadmatch":
                yield rest.partition(".")[0] or "__init__"


def test_every_room_is_in_the_picture():
    rooms = {path.stem for path in PACKAGE.glob("*.py")}
    rooms |= {path.parent.relative_to(PACKAGE).parts[0] for path in PACKAGE.glob("*/**/*.py")}
    assert rooms == read_floors().keys()


def test_imports_point_down():
    floors, wrong = read_floors(), []
    for file in PACKAGE.rglob("*.py"):
        own = file.relative_to(PACKAGE).with_suffix("").parts[0]
        for room in list_imports(file):
            # A name such as `load` in `from quadmatch import load` is no room: the whole package is meant.
            below = floors.get(room, floors["__init__"]) < floors[own]
            if room != own and not below and (own, room) not in EXCEPTIONS:
                wrong.append(f"{file.relative_to(PACKAGE)} imports {room}")
    assert not wrong, "\n".join(sorted(wrong))


def test_few_modules_lie_outside_of_a_room():
    assert len(list(PACKAGE.glob("*.py"))) <= 12
