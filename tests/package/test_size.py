"""The code stays in pieces that one can read: short files, short functions, and nothing written twice."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from quadmatch.methods import METHODS

PACKAGE = Path(__file__).parents[2] / "src" / "quadmatch"
FILE, HEAD, FUNCTION, SAME = 200, 120, 25, 15
"""Lines of a file at most, of a method's file, of nine functions in ten, and of functions of the same body."""


def list_functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}", node


def count_lines(node: ast.AST) -> int:
    return node.end_lineno - node.lineno + 1  # type: ignore[attr-defined]


class Anonymous(ast.NodeTransformer):
    """A body without its names, strings and numbers: what is left is its shape."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.copy_location(ast.Name("_", ast.Load()), node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.copy_location(ast.arg("_"), node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.copy_location(ast.Constant(None), node)


def test_no_file_of_a_method_is_long() -> None:
    builders = (getattr(method.build, "func", method.build) for method in METHODS.values())
    files = {PACKAGE.parent / (build.__module__.replace(".", "/") + ".py") for build in builders}
    assert len(files) > 8
    assert not [path.name for path in files if len(path.read_text(encoding="utf-8").splitlines()) > HEAD]


def test_no_file_is_long() -> None:
    lengths = {
        str(path.relative_to(PACKAGE)): len(path.read_text(encoding="utf-8").splitlines())
        for path in PACKAGE.rglob("*.py")
    }
    assert not {name: length for name, length in lengths.items() if length > FILE}


def test_functions_are_short() -> None:
    lengths = sorted(count_lines(node) for _, node in list_functions())
    assert lengths[int(0.9 * len(lengths))] <= FUNCTION


def test_no_function_is_written_twice() -> None:
    shapes: dict[str, list[str]] = defaultdict(list)
    for name, node in list_functions():
        if count_lines(node) >= SAME:
            body = [
                part for part in node.body if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
            ]
            shape = ast.dump(Anonymous().visit(ast.Module(body, [])))
            shapes[shape].append(name)
    assert not [names for names in shapes.values() if len(names) > 1]
