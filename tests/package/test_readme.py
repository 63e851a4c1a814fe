"""The README's code runs as it stands, and what it links to is there."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize("code", BLOCKS)
def test_code_runs(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    exec(code, names)
    shown = capsys.readouterr().out
    assert "30 pairs" in shown or "True" in shown


def test_first_example_finds_the_order() -> None:
    names: dict = {}
    exec(BLOCKS[0], names)
    assert {tuple(pair) for pair in names["result"].pairs.tolist()} == {
        (int(node), place) for place, node in enumerate(names["order"])
    }


def test_links_lead_somewhere() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    broken = [
        f"{page.name}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([\w./-]+)\)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert not broken


def test_the_citation_is_of_this_version_and_of_the_paper() -> None:
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert (citation["version"], citation["license"]) == (project["version"], project["license"])
    (paper,) = citation["references"]
    assert paper["title"] in README
    assert paper["url"] in README


def test_commands_to_install_work_from_a_clone() -> None:
    """The package is on no index yet: `pip install 'quadmatch[…]'` fails for everyone."""
    texts = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    assert not [path.name for path in texts if "pip install 'quadmatch" in path.read_text("utf-8")]
