"""What the site shows beside the pages in this folder: notebooks, and files that lie outside of it.

Notebooks are committed without outputs. With QUADMATCH_RUN_NOTEBOOKS set they are run while the site is built,
and shown with their texts and pictures.
"""

from __future__ import annotations

import base64
import os
import posixpath
import re
from pathlib import Path
from typing import Any

import nbformat
from benchmark_page import read_records, write_page
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
RUN = "QUADMATCH_RUN_NOTEBOOKS"
LINK = re.compile(r"(!?)\[([^\]]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")
OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/results": "benchmarks.md",
}
"""Files of the repository that are pages of the site too; a link to any other becomes its text."""
WORD = re.compile(r"<code>([^<\s]{1,32})</code>")
BLANK = re.compile(r"\x1b\[[0-9;]*m")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made of notebooks and of files outside the folder."""
    for path in sorted(Path(config.docs_dir, "notebooks").glob("*.ipynb")):
        notebook = read_notebook(path, run=bool(os.environ.get(RUN)))
        text, pictures = convert_notebook(notebook, path.stem)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=text))
        for name, content in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, OUTSIDE[name], content=text))
    records = read_records(ROOT / "benchmarks" / "results")
    files.append(File.generated(config, OUTSIDE["benchmarks/results"], content=write_page(records)))
    for name in records:
        text = (ROOT / "benchmarks" / "results" / f"{name}.md").read_text(encoding="utf-8")
        files.append(File.generated(config, f"records/{name}.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links to notebooks and to files outside the folder at their pages."""
    folder = posixpath.dirname(page.file.src_uri)
    made = page.file.generated_by is not None and "notebooks/" not in page.file.src_uri

    def mend(found: re.Match[str]) -> str:
        mark, text, target, anchor = found[1], found[2], found[3], found[4] or ""
        if mark or re.match(r"[a-z]+:", target):
            return found[0]
        # What was made of a file outside has that file's own links, which count from the repository.
        place = posixpath.normpath(posixpath.join("docs", folder, target) if not made else target)
        goal = place_of(place)
        if goal is None:
            return text
        return f"[{text}]({posixpath.relpath(goal, folder or '.')}{anchor})"

    return LINK.sub(mend, markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Keep a word of code such as `--heat-map` on one line: browsers would break it after a hyphen."""
    return WORD.sub(r'<code class="word">\1</code>', html)


def place_of(path: str) -> str | None:
    """Page or file of the site that shows a file of the repository; None if nothing does."""
    if path.startswith("docs/"):
        inside = path.removeprefix("docs/")
        return re.sub(r"^(notebooks/.*)\.ipynb$", r"\1.md", inside)
    known = [name for name in OUTSIDE if path == name or path.startswith(f"{name}/")]
    return OUTSIDE[known[0]] if known else None


def read_notebook(path: Path, *, run: bool) -> Any:
    """The notebook, with outputs if it is to be run."""
    notebook = nbformat.read(path, as_version=4)
    if run:
        from nbclient import NotebookClient

        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(path.parent)}}).execute()
    return notebook


def convert_notebook(notebook: Any, name: str) -> tuple[str, dict[str, bytes]]:
    """Markdown of the cells, their outputs as texts and pictures, and the pictures by file name."""
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        if cell.cell_type != "code" or not cell.source.strip():
            continue
        parts.append(f"```python\n{cell.source.strip()}\n```")
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/png" in data:
                file = f"{name}-{len(pictures) + 1}.png"
                pictures[file] = base64.b64decode(data["image/png"])
                parts.append(f"![What the cell above draws]({file})")
            elif text := output.get("text", data.get("text/plain", "")):
                parts.append(f"<div class='notebook-output' markdown>\n\n```text\n{clean(text)}\n```\n\n</div>")
    ran = any(cell.get("outputs") for cell in notebook.cells)
    note = "" if ran else " It is shown here without its outputs: run it to see them."
    parts.insert(1, f'*This page is the notebook <a href="{name}.ipynb" download>{name}.ipynb</a>.{note}*')
    return "\n\n".join(parts), pictures


def clean(text: str) -> str:
    """Text without the colours of a terminal."""
    return BLANK.sub("", text).rstrip()
