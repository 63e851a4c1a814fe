import subprocess
import sys

import pytest
from typer.testing import CliRunner

from quadmatch import __version__
from quadmatch.cli import app

COMMANDS = ["demo", "match", "match-many", "bench solvers", "data prepare", "data check", "train", "evaluate"]
COMMANDS += ["bench images", "reproduce", "export", "serve"]


def _run(*words):
    return CliRunner().invoke(app, list(words))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command):
    result = _run(*command.split(), "--help")
    assert result.exit_code == 0, result.output
    assert "Usage" in result.output


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
    done = subprocess.run(
        [sys.executable, "-m", "quadmatch.cli", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("quadmatch ")
