"""How many small defects the tests notice: changes one place of a module at a time and runs the module's tests.

    python benchmarks/mutate.py --count 120 --seed 0 --out results/mutants.json
    python benchmarks/mutate.py --count 120 --seed 0 --again --out results/mutants.json

Places are drawn at random, the rooms below in turn. A mutant survives if its tests pass. What the file holds already is
not tried again, so that a run that was stopped goes on; `--again` tries those that were not noticed, with the tests of
now. One that changes nothing a caller can see is given an "equivalent" with the reason by hand, and is counted apart.

No file is changed. Package and tests are imported once; a mutant is a fork in which the code of one function is
another. Loops that are compiled, and those that call them, are compiled anew there.

The tests of a part run once without any change before its first mutant: they must pass, and a mutant has four times the
processor time that they took, or `--limit`. That time does not depend on what else the machine does. A mutant that uses
it up is "too slow" and counted apart; of one that is noticed the record has the test and its error.
"""

from __future__ import annotations

import argparse
import ast
import gc
import importlib
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "quadmatch"
TESTS = {
    "solvers/quadratic": (
        "solvers/quadratic",
        "test_decode.py",
        "layers/test_quadratic_constraint.py",
        "test_matcher.py",
        "solvers/test_contracts.py",
    ),
    "solvers/linear": ("solvers/linear", "solvers/test_contracts.py", "test_decode.py"),
    "solvers/lawler": ("solvers/lawler", "solvers/test_contracts.py", "methods/test_peers.py"),
    "solvers/search": (
        "solvers/search",
        "graphs/test_match_graphs.py",
        "graphs/test_quadratic_assignment.py",
        "graphs/test_numbers.py",
    ),
    "layers": ("layers", "methods/test_dgm.py", "methods/test_peers.py", "methods/test_contracts.py"),
    "losses.py": ("test_losses.py", "experiments/test_build.py", "reproduce/test_losses.py"),
    "decode.py": ("test_decode.py", "test_matcher.py"),
    "datasets/protocols.py": ("datasets/test_gathering.py", "datasets/test_pairs.py", "evaluation/test_evaluate.py"),
    "evaluation": (
        "evaluation/test_report.py",
        "evaluation/test_evaluate.py",
        "evaluation/test_references.py",
        "models/test_load.py",
    ),
}
"""What is changed, and the tests that should notice."""
FUZZ_CALLS = "3000"
"""Of the random calls of a test: a defect that only more of them find is counted as a survivor."""
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.MatMult: ast.Mult,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.And: ast.Or, ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
OPTIONS = ["-q", "-x", "-rfE", "-p", "no:cacheprovider", "-m", "not slow", "--rootdir", str(ROOT)]


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


def make_mutant(path: Path, number: int) -> tuple[str, ast.Module, ast.Module]:
    """What is done to place `number` of a file, and the file's tree before and after."""
    text = path.read_text(encoding="utf-8")
    before, after = ast.parse(text), ast.parse(text)
    place: Any = list(list_places(after))[number]
    return f"{path.relative_to(PACKAGE)}:{place.lineno} {change(place)}", before, ast.fix_missing_locations(after)


def list_codes(code: CodeType) -> Iterator[CodeType]:
    """The code of every function of a module, those inside others too."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from list_codes(constant)


def put_in(path: Path, before: ast.Module, after: ast.Module) -> int:
    """Give the functions of a module that is imported the code and the defaults of another tree; how many changed."""
    old, new = (list(list_codes(compile(tree, str(path), "exec", dont_inherit=True))) for tree in (before, after))
    names = {one.co_qualname: other for one, other in zip(old, new) if one != other}
    defaults = dict(_list_defaults(before, after))
    changed: list[FunctionType] = []
    for function in gc.get_objects():
        if not isinstance(function, FunctionType) or function.__code__.co_filename != str(path):
            continue
        code = names.get(function.__qualname__)
        if code is not None and len(code.co_freevars) == len(function.__code__.co_freevars):
            function.__code__ = code
            changed.append(function)
        if function.__name__ in defaults:
            positional, keyword = defaults[function.__name__]
            function.__defaults__ = positional or None
            function.__kwdefaults__ = {**(function.__kwdefaults__ or {}), **keyword} or None
            changed.append(function)
    _compile_anew(changed)
    return len(changed)


Defaults = tuple[tuple[Any, ...], dict[str, Any]]


def _list_defaults(before: ast.Module, after: ast.Module) -> Iterator[tuple[str, Defaults]]:
    """Functions whose defaults differ, and what they are: positional ones, and those by name."""
    for old, new in zip(ast.walk(before), ast.walk(after)):
        if isinstance(new, ast.FunctionDef) and isinstance(old, ast.FunctionDef):
            named = zip(new.args.kwonlyargs, new.args.kw_defaults)
            if [ast.dump(old.args)] != [ast.dump(new.args)]:
                positional = tuple(ast.literal_eval(one) for one in new.args.defaults)
                yield new.name, (positional, {key.arg: ast.literal_eval(one) for key, one in named if _literal(one)})


def _literal(node: ast.expr | None) -> bool:
    try:
        ast.literal_eval(node)  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return False
    return True


def _compile_anew(changed: list[FunctionType]) -> None:
    """Loops made of these functions, and those that call such loops, forget what is kept on disk."""
    from numba.core.caching import NullCache
    from numba.core.dispatcher import Dispatcher

    loops = [one for one in gc.get_objects() if isinstance(one, Dispatcher)]
    stale: list[Any] = [one for one in loops if one.py_func in changed]
    for one in stale:
        callers = (loop for loop in loops if one in _list_called(loop) and loop not in stale)
        stale.extend(callers)
        one._cache = NullCache()


def _list_called(loop: Any) -> list[Any]:
    function = loop.py_func
    return [function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__]


def try_mutant(path: Path, before: ast.Module, after: ast.Module, tests: tuple[str, ...], limit: int) -> dict[str, str]:
    """Run the tests in a fork with other code: what came of it, and which test failed first."""
    import pytest

    output = Path(tempfile.gettempdir()) / f"mutant-{os.getpid()}.txt"
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        stream = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(stream, 1)
        os.dup2(stream, 2)
        if before is not after and not put_in(path, before, after):
            os._exit(99)
        os._exit(int(pytest.main([*OPTIONS, *_locate(tests)])))
    until, status = time.monotonic() + 20 * limit, (0, 0)
    while status[0] == 0 and time.monotonic() < until:  # one that sleeps uses no processor
        time.sleep(0.1)
        status = os.waitpid(child, os.WNOHANG)
    if status[0] == 0:
        os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)
    ended = os.waitstatus_to_exitcode(status[1])
    if ended in (2, 3, 4, 5, 99):
        raise RuntimeError(f"tests of {path} could not run ({ended}): {output.read_text(encoding='utf-8')[-2000:]}")
    verdict = "survived" if ended == 0 else "too slow" if ended in (-signal.SIGXCPU, -signal.SIGKILL) else "noticed"
    return {"verdict": verdict} | ({} if ended == 0 else name_failure(output.read_text(encoding="utf-8"), ended))


def name_failure(output: str, ended: int) -> dict[str, str]:
    """The first test that failed and with which error, from what pytest printed; or the signal that ended it."""
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - ([\w.]+).*)?$", output, re.M)
    if failed is None:
        return {"by": signal.Signals(-ended).name} if ended < 0 else {}
    return {"by": failed[1]} | ({"error": failed[2]} if failed[2] else {})


def find_limit(part: str, path: Path, least: int) -> int:
    """Processor seconds for a mutant of a part: four times what its tests take, which must pass without a change."""
    tree, before = ast.parse(path.read_text(encoding="utf-8")), _count_seconds()
    found = try_mutant(path, tree, tree, TESTS[part], 10 * least)
    if found["verdict"] != "survived":
        raise RuntimeError(f"the tests of {part} fail without any change: {' '.join(found.values())}")
    return max(least, round(4 * (_count_seconds() - before)))


def _count_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _locate(tests: tuple[str, ...]) -> list[str]:
    return [str(ROOT / "tests" / one) for one in tests]


def draw_places(parts: list[str], seed: int) -> list[tuple[str, Path, int]]:
    """All places in the order in which they are tried, each part in turn."""
    turns = []
    for part in parts:
        whole, places = PACKAGE / part, []
        for path in sorted(whole.glob("*.py")) if whole.is_dir() else [whole]:
            number = len(list(list_places(ast.parse(path.read_text(encoding="utf-8")))))
            places += [(part, path, place) for place in range(number)]
        random.Random(f"{seed} {part}").shuffle(places)
        turns.append(places)
    return [one for turn in zip_longest(*turns) for one in turn if one is not None]


def load_all(parts: list[str]) -> None:
    """Import what is changed and what tests it, once for all mutants."""
    import pytest

    tests = sorted({one for part in parts for one in TESTS[part]})
    if pytest.main([*OPTIONS, "--collect-only", "-qq", *_locate(tuple(tests))]):
        raise RuntimeError("the tests cannot be collected")
    for part in parts:
        whole = PACKAGE / part
        for path in sorted(whole.glob("*.py")) if whole.is_dir() else [whole]:
            name = path.relative_to(PACKAGE.parent).with_suffix("").as_posix().replace("/", ".")
            importlib.import_module(name.removesuffix(".__init__"))
    gc.collect()


def describe() -> str:
    """The processor's model and the number of cores."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    return f"{model}, {os.cpu_count()} cores"


def count(found: list[dict[str, str]]) -> dict[str, int]:
    """How many were tried, and what came of them; those that change nothing are counted apart."""
    counts = Counter("equivalent" if "equivalent" in one else one["verdict"].replace(" ", "_") for one in found)
    return {"tried": len(found), **{kind: counts[kind] for kind in ("noticed", "too_slow", "survived", "equivalent")}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after so long")
    parser.add_argument("--limit", type=int, default=240, help="processor seconds for one mutant's tests, at least")
    parser.add_argument("--again", action="store_true", help="try those that were not noticed once more")
    parser.add_argument("--only", nargs="*", default=list(TESTS))
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    origin = {"commit": commit.stdout.strip(), "date": datetime.now(UTC).isoformat(timespec="seconds")}
    origin |= {"command": " ".join(["python", "benchmarks/mutate.py", *sys.argv[1:]]), "hardware": describe()}
    found = json.loads(options.out.read_text(encoding="utf-8"))["mutants"] if options.out.exists() else []
    known = {one["mutant"]: one for one in found}
    os.environ.setdefault("QUADMATCH_FUZZ_CALLS", FUZZ_CALLS)
    os.environ["COLUMNS"] = "400"  # room for a test's name and its error in one line
    load_all(options.only)
    began, limits = time.monotonic(), dict[str, int]()
    for part, path, place in draw_places(options.only, options.seed)[: options.count]:
        what, before, after = make_mutant(path, place)
        entry = known.get(what, {})
        if entry and ("equivalent" in entry or not (options.again and entry["verdict"] != "noticed")):
            continue
        if time.monotonic() - began > 60 * options.minutes:
            break
        if part not in limits:
            limits[part] = find_limit(part, path, options.limit)
            print(f"{part}: its tests pass without a change; {limits[part]} s for a mutant", flush=True)
        verdict = try_mutant(path, before, after, TESTS[part], limits[part])
        if not entry:
            found.append(entry)
        else:
            entry.clear()
        entry |= {"mutant": what, **verdict, "commit": origin["commit"]}
        print(f"{len(found)} of {options.count}: {what}: {' '.join(verdict.values())}", flush=True)
        record = {"seed": options.seed, **origin, **count(found), "mutants": found}
        options.out.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
