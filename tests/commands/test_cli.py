import json
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from quadmatch import __version__
from quadmatch.cli import app
from quadmatch.datasets import DATASETS
from quadmatch.experiments.shipped import list_experiments
from quadmatch.methods import METHODS
from quadmatch.models.load import list_models
from quadmatch.reproduce import ITEMS

COMMANDS = [
    "demo",
    "match",
    "transfer",
    "match-many",
    "bench solvers",
    "data prepare",
    "data check",
    "train",
    "evaluate",
]
COMMANDS += ["bench images", "reproduce", "export", "serve", "list"]


def _run(*words):
    return CliRunner().invoke(app, list(words))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command):
    result = _run(*command.split(), "--help")
    assert result.exit_code == 0, result.output
    assert "Usage" in result.output
    assert "<bool>" not in result.output
    assert "<list" not in result.output
    assert not re.search(r" \.\s", result.output)


def test_no_word_at_all_asks_for_help():
    for words in ([], ["data"], ["bench"]):
        result = _run(*words)
        assert result.exit_code == 0
        assert result.output == _run(*words, "--help").output


def test_help_lists_models_and_says_what_a_default_depends_on():
    shown = CliRunner().invoke(app, ["match", "--help"], env={"COLUMNS": "300"}).output
    assert f"({', '.join(list_models())})" in shown
    assert "default: (partial where keypoints were detected, else all)" in shown


def test_list_knows_every_registry():
    found = json.loads(_run("list", "--json").output)
    assert {kind: list(names) for kind, names in found.items()} == {
        "models": list_models(),
        "data": list(DATASETS),
        "experiments": list_experiments(),
        "tables": list(ITEMS),
        "methods": list(METHODS),
    }
    assert all(about.strip() for names in found.values() for about in names.values())
    assert "another name of qcdgm2-voc" in found["models"]["qcdgm-voc"]
    shown = _run("list", "tables").output
    assert all(f"{name} " in shown and about in shown for name, about in found["tables"].items())
    assert "vgg16" not in shown
    assert _run("list", "nothing").exit_code == 2


def test_version_and_help():
    assert _run("--version").output.strip() == f"quadmatch {__version__}"
    assert _run().output.strip() == _run("--help").output.strip()
    assert _run("nothing").exit_code != 0


def test_faults_of_the_user_are_one_line(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("")
    result = _run("demo", "--out", str(file))
    assert result.exit_code == 1
    assert "Traceback" not in result.output
    assert "error: " in result.output
    monkeypatch.setenv("QUADMATCH_TRACEBACK", "1")
    assert isinstance(_run("demo", "--out", str(file)).exception, OSError)


def test_the_module_runs_as_a_program():
    done = subprocess.run([sys.executable, "-m", "quadmatch", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("quadmatch ")
