from typer.testing import CliRunner

from quadmatch.cli import app
from quadmatch.provenance import find_version


def test_demo_shows_what_the_constraint_gains(tmp_path) -> None:
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    counts = [
        int(line.split(" right")[0].split(": ")[1].split()[0])
        for line in result.output.splitlines()
        if " right" in line
    ]
    assert counts[1] > counts[0] + 5
    for name in ("graphs.png", "features-alone.png"):
        assert (tmp_path / name).read_bytes()[:4] == b"\x89PNG"


def test_version_and_help() -> None:
    assert find_version() in CliRunner().invoke(app, ["--version"]).output
    shown = CliRunner().invoke(app, ["--help"]).output
    for command in ("bench", "data", "demo", "evaluate", "export", "reproduce"):
        assert command in shown
