"""`import quadmatch` costs next to nothing, and a name brings no library that only some users need."""

import json
import subprocess
import sys

import pytest

import quadmatch

SCRIPT = """
import json, sys
before = set(sys.modules)
{code}
new = sorted(set(sys.modules) - before)
print(json.dumps({{"libraries": sorted({{name.partition(".")[0] for name in new}}), "modules": new}}))
"""
EACH = """
import json, os, sys
before = set(sys.modules)
import torch  # Before the process divides: most names need it, and it takes nearly all of the time.
for name in sys.argv[1:]:
    if not (child := os.fork()):
        exec(f"from quadmatch import {name}")
        new = set(sys.modules) - before
        print(json.dumps([name, sorted({one.partition(".")[0] for one in new})]), flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, name
"""
HEAVY = {
    "PIL", "fastapi", "matplotlib", "networkx", "numba", "pydantic", "rich", "scipy", "skimage", "tensorboard", "typer"
}  # fmt: skip


def run(code: str) -> dict:
    done = subprocess.run([sys.executable, "-c", SCRIPT.format(code=code)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def test_the_package_alone_imports_nothing() -> None:
    found = run("import quadmatch")
    assert "torch" not in found["libraries"]
    assert [name for name in found["modules"] if name.startswith("quadmatch")] == ["quadmatch"]


@pytest.fixture(scope="module")
def libraries() -> dict[str, list[str]]:
    """What each public name imports, by itself."""
    command = [sys.executable, "-c", EACH, *quadmatch.__all__]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(map(json.loads, done.stdout.splitlines()))


@pytest.mark.parametrize("name", quadmatch.__all__)
def test_a_name_brings_no_heavy_library(name: str, libraries: dict[str, list[str]]) -> None:
    assert "quadmatch" in libraries[name]
    assert not HEAVY & set(libraries[name])


def test_graphs_need_no_networks() -> None:
    found = run("from quadmatch import match_graphs, quadratic_assignment")
    own = {name.split(".")[1] for name in found["modules"] if name.startswith("quadmatch.")}
    assert own <= {"graph", "graphs", "matching", "result", "solvers"}


def test_all_names_are_listed_and_a_wrong_one_is_named() -> None:
    assert {"match_graphs", "load", "Matcher"} <= set(dir(quadmatch))
    with pytest.raises(AttributeError, match="no attribute 'match_graph'"):
        _ = quadmatch.match_graph


QUICK = [
    ("--version",),
    ("--help",),
    ("list", "models"),
    ("match", "none.jpg", "none.png", "--points-a", "a.csv", "--points-b", "b.csv"),
    ("match", "none.jpg", "none.png", "--detect", "9", "--model", "none"),
    ("match-many", "none.csv", "--out", "none.jsonl"),
    ("train", "none"),
    ("evaluate", "none"),
    ("evaluate", "vgg16", "--dataset", "willow", "--root", "none"),
    ("reproduce", "willow", "--mirror", "none"),
    ("export", "none", "name"),
]
"""What is answered at once: questions, and mistakes in what was typed."""


@pytest.mark.parametrize("words", QUICK, ids=" ".join)
def test_what_needs_no_torch_does_not_wait_for_it(words: tuple[str, ...]) -> None:
    code = f"""
from contextlib import suppress
from quadmatch.cli import app
with suppress(SystemExit):
    sys.stdout, out = sys.stderr, sys.stdout
    app({list(words)})
sys.stdout = out"""
    assert "torch" not in run(code)["libraries"]


def test_completion_knows_names_and_does_not_wait_for_torch() -> None:
    for words, expected in (("quadmatch reproduce wil", "willow-constraint"), ("quadmatch match --model d", "default")):
        code = f"""
import contextlib, io, os
os.environ.update(_QUADMATCH_COMPLETE="complete_bash", COMP_WORDS="{words}", COMP_CWORD="{words.count(" ")}")
from quadmatch.cli import app
with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):
    app(prog_name="quadmatch")
assert "{expected}" in shown.getvalue().split(), shown.getvalue()"""
        assert "torch" not in run(code)["libraries"]
