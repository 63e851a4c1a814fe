"""The notebooks run from top to bottom, are kept without outputs, and become pages with their pictures."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import nbformat
import pytest

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
PICTURES = {"graphs": 6, "photographs": 4}
every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def hooks() -> Iterator[ModuleType]:
    """What builds the site's pages, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("site_hooks", DOCS / "site_hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(DOCS)  # as mkdocs does
        spec.loader.exec_module(module)
        yield module


def test_both_are_there() -> None:
    assert [path.stem for path in NOTEBOOKS] == sorted(PICTURES)


@every_notebook
def test_kept_without_outputs(path: Path, hooks: ModuleType) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not [cell.id for cell in cells if cell.outputs or cell.execution_count is not None]
    text, pictures = hooks.convert_notebook(notebook, path.stem)
    assert not pictures
    assert "without its outputs" in text
    assert all(cell.source.strip() in text for cell in notebook.cells)


@pytest.mark.slow
@every_notebook
def test_runs_and_becomes_a_page(path: Path, hooks: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("QUADMATCH_PRECISION", "float32,channels_last,1")
    text, pictures = hooks.convert_notebook(hooks.read_notebook(path, run=True), path.stem)  # a cell's error is raised
    assert len(pictures) == PICTURES[path.stem]
    for name, content in pictures.items():
        assert content.startswith(b"\x89PNG")
        assert f"]({name})" in text
    assert "without its outputs" not in text
