"""How many small defects the tests notice: changes one place of a module at a time and runs the module's tests.

    python benchmarks/mutate.py --count 100 --seed 0 --out benchmarks/mutants.json

Works on a copy of the package; places are drawn at random, the rooms below in turn. A mutant survives if its tests
pass. What a file of the same commit, seed and rooms holds already is not tried again.
"""

from __future__ import annotations

import argparse
import ast
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).parents[1]
TESTS = {
    "solvers/quadratic": ("solvers/quadratic", "test_decode.py", "solvers/test_contracts.py"),
    "solvers/linear": ("solvers/linear", "solvers/test_contracts.py"),
    "solvers/lawler": ("solvers/lawler", "solvers/test_contracts.py"),
    "solvers/search": ("solvers/search", "graphs/test_match_graphs.py", "graphs/test_quadratic_assignment.py"),
    "layers": ("layers", "methods/test_dgm.py", "methods/test_contracts.py"),
    "losses.py": ("test_losses.py", "experiments/test_build.py"),
    "decode.py": ("test_decode.py", "test_matcher.py"),
    "datasets/protocols.py": ("datasets/test_pairs.py", "datasets/test_gathering.py"),
    "evaluation/report.py": ("evaluation/test_report.py", "evaluation/test_evaluate.py"),
}
"""What is changed, and the tests that should notice."""
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.MatMult: ast.Mult,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.And: ast.Or, ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


def list_places(tree: ast.Module) -> Iterator[ast.AST]:
    """Operators, comparisons, numbers, truth values and negations inside functions; not annotations or messages."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for statement in function.body:
                if not isinstance(statement, (ast.Raise, ast.FunctionDef)):
                    yield from _walk(statement)
            yield from (one for one in [*function.args.defaults, *function.args.kw_defaults] if one and _fits(one))


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, (ast.Raise, ast.JoinedStr, ast.AnnAssign)):
        return
    if _fits(node):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from _walk(child)


def _fits(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (bool, int, float))
    if isinstance(node, (ast.BinOp, ast.BoolOp, ast.AugAssign)):
        return type(node.op) in SWAPS
    if isinstance(node, ast.Compare):
        return type(node.ops[0]) in SWAPS
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub, ast.Invert))


def change(node: ast.AST) -> str:
    """Change the place; returns what was done."""
    before = ast.unparse(node)
    if isinstance(node, ast.Constant):
        value = node.value
        node.value = not value if isinstance(value, bool) else value + 1 if isinstance(value, int) else value * 2 + 0.1
    elif isinstance(node, ast.Compare):
        node.ops[0] = SWAPS[type(node.ops[0])]()  # type: ignore[assignment]
    elif isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd() if isinstance(node.op, ast.USub) else node.op
        if not isinstance(node.op, ast.UAdd):
            node.operand = ast.UnaryOp(node.op, node.operand)
    elif isinstance(node, (ast.BinOp, ast.BoolOp, ast.AugAssign)):
        node.op = SWAPS[type(node.op)]()  # type: ignore[assignment]
    return f"{before} → {ast.unparse(node)}"


def run_tests(package: Path, tests: tuple[str, ...], quiet: str, limit: int) -> None:
    """In a process of its own: exit code 0 if all tests pass; it is killed after `limit` seconds of processor time."""
    import pytest

    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))

    output = os.open(quiet, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.path.insert(0, str(package))
    os.environ["PYTHONPATH"] = str(package)
    options = ["-q", "-x", "-p", "no:cacheprovider", "-m", "not slow", "--rootdir", str(ROOT)]
    os._exit(int(pytest.main([*options, *(str(ROOT / "tests" / one) for one in tests)])))


def try_mutant(package: Path, path: Path, number: int, tests: tuple[str, ...], limit: int) -> tuple[str, str]:
    """Change place `number` of a file, run its tests, change it back; what was done, and what came of it."""
    text, times = path.read_text(encoding="utf-8"), path.stat()
    tree = ast.parse(text)
    place = list(list_places(tree))[number]
    what = f"{path.relative_to(package / 'quadmatch')}:{place.lineno} {change(place)}"  # type: ignore[attr-defined]
    path.write_text(ast.unparse(ast.fix_missing_locations(tree)), encoding="utf-8")
    with forgetting(package, path):
        worker = multiprocessing.get_context("fork").Process(
            target=run_tests, args=(package, tests, str(package / "output.txt"), limit)
        )
        worker.start()
        worker.join()
    path.write_text(text, encoding="utf-8")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    killed = worker.exitcode in (-signal.SIGXCPU, -signal.SIGKILL)
    return what, "too slow" if killed else "noticed" if worker.exitcode else "survived"


@contextmanager
def forgetting(package: Path, path: Path) -> Iterator[None]:
    """Within: compiled loops of another state of a file that has some are not used, and none of this state stays."""
    if "compile_loop" not in path.read_text(encoding="utf-8"):
        yield
        return
    aside = package / "compiled"
    aside.mkdir()
    kept = dict(enumerate(package.rglob("*.nb[ic]")))
    for number, one in kept.items():
        one.rename(aside / str(number))
    yield
    for one in package.rglob("*.nb[ic]"):
        one.unlink()
    for number, one in kept.items():
        (aside / str(number)).rename(one)
    aside.rmdir()


def draw_places(package: Path, parts: list[str], seed: int) -> tuple[list[tuple[str, Path, int]], int]:
    """All places in the order in which they are tried, each part in turn; and their number."""
    turns = []
    for part in parts:
        whole, places = package / "quadmatch" / part, []
        for path in sorted(whole.glob("*.py")) if whole.is_dir() else [whole]:
            number = len(list(list_places(ast.parse(path.read_text(encoding="utf-8")))))
            places += [(part, path, place) for place in range(number)]
        random.Random(f"{seed} {part}").shuffle(places)
        turns.append(places)
    found = [one for turn in zip_longest(*turns) for one in turn if one is not None]
    return found, len(found)


def describe() -> str:
    """The processor's model and the number of cores."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    return f"{model}, {os.cpu_count()} cores"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after so long")
    parser.add_argument("--limit", type=int, default=240, help="processor seconds for one mutant's tests")
    parser.add_argument("--only", nargs="*", default=list(TESTS))
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    import hypothesis  # noqa: F401  what every process needs is imported once, before the first fork
    import numba  # noqa: F401
    import scipy.optimize  # noqa: F401
    import torch  # noqa: F401

    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    origin = {"commit": commit.stdout.strip(), "date": datetime.now(UTC).isoformat(timespec="seconds")}
    origin |= {"command": " ".join(["python", "benchmarks/mutate.py", *sys.argv[1:]]), "hardware": describe()}
    package = Path(tempfile.mkdtemp(prefix="mutants-"))
    shutil.copytree(ROOT / "src" / "quadmatch", package / "quadmatch")
    chosen, number = draw_places(package, options.only, options.seed)
    same = {"places": number, "seed": options.seed, "commit": origin["commit"]}
    before = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {}
    found = before["mutants"] if same.items() <= before.items() else []
    began = perf_counter()
    for part, path, place in chosen[len(found) : options.count]:
        if perf_counter() - began > 60 * options.minutes:
            break
        what, verdict = try_mutant(package, path, place, TESTS[part], options.limit)
        found.append({"mutant": what, "verdict": verdict})
        print(f"{len(found)} of {options.count}: {verdict}: {what}", flush=True)
        counts = {kind.replace(" ", "_"): 0 for kind in ("noticed", "survived", "too slow")}
        counts |= Counter(one["verdict"].replace(" ", "_") for one in found)
        record = {**same, **origin, "tried": len(found), **counts, "mutants": found}
        options.out.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    shutil.rmtree(package)


if __name__ == "__main__":
    main()
