"""The documentation's site builds without a warning, needs no other host, and what its pages show runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from shutil import which
from typing import Any
from urllib.parse import unquote, urlparse

import pytest
import torch
from random_pairs import random_pair

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RECORDS = ROOT / "benchmarks" / "results"
TRAINING = ("train-on-your-folder", "add-a-method")
PAGES = ("index", "quick-start", "own-graphs", "which-solver", *TRAINING)
"""Those whose code is complete: it runs from top to bottom in an empty folder."""
BLOCK = re.compile(r"^```(python|toml)(?: title=\"([\w.]+)\")?\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src"}
"""What a browser fetches by itself, by tag; and links other than `a`."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in TRAINING else []) for name in PAGES]
)
def test_code_of_a_page_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUADMATCH_PRECISION", "float32,channels_last,1")
    from quadmatch.methods import METHODS

    before = dict(METHODS)
    names: dict[str, object] = {"__name__": name}
    blocks = BLOCK.findall((DOCS / f"{name}.md").read_text(encoding="utf-8"))
    assert any(kind == "python" for kind, _, _ in blocks)
    try:
        for number, (kind, file, text) in enumerate(blocks):
            if kind == "toml":
                Path(file).write_text(text, encoding="utf-8")
            else:
                exec(compile(text, f"{name}.md, block {number}", "exec"), names)
    finally:
        METHODS.clear()
        METHODS.update(before)


def test_code_beside_the_methods_runs_on_a_pair() -> None:
    from quadmatch.methods import METHODS

    before = dict(METHODS)
    pair, source, target = random_pair(6, 6, dtype=torch.float32, channels=1024)
    names: dict[str, Any] = {"__name__": "methods", "pair": pair, "source": source, "target": target}
    try:
        for _, _, text in BLOCK.findall((DOCS / "methods.md").read_text(encoding="utf-8")):
            exec(compile(text, "methods.md", "exec"), names)
        assert METHODS.keys() - before.keys() == {"single"}
    finally:
        METHODS.clear()
        METHODS.update(before)
    assert names["single"](pair, source, target).assignment.shape == (1, 6, 6)


def test_a_method_with_a_constraint_and_its_experiment_take_few_lines() -> None:
    """They are the first code and the first experiment of the page, and are run with the page's other code."""
    blocks = BLOCK.findall((DOCS / "add-a-method.md").read_text(encoding="utf-8"))
    method = next(text for kind, _, text in blocks if kind == "python")
    experiment = next(text for kind, _, text in blocks if kind == "toml")
    assert "cross_graph=True" in method
    assert "[constraint]" in experiment
    assert sum(bool(line.strip()) for line in (method + experiment).splitlines()) < 40


def draw_measured(records: list[Path]) -> str:
    """The table of page "Which solver?", from records of `quadmatch bench solvers`."""
    lines = ["| what | size | ours | peer | ratio | required | met |", "|---|---|---|---|---|---|---|"]
    rows = [row for record in records for row in json.loads(record.read_text(encoding="utf-8"))["rows"]]
    for row in rows:
        if row["name"].startswith("scaling"):
            continue
        ours, peer = (
            next((format(row[key], ".3g") for key in (side, f"{side}_seconds", f"{side}_bytes") if key in row), "")
            for side in ("ours", "peer")
        )
        ratio = format(row["ratio"], ".3g") if "ratio" in row else ""
        size = row["size"].replace("0.0223607", "0.022")
        met = "yes" if row["met"] else "no"
        lines.append(f"| {row['name']} | {size} | {ours} | {peer} | {ratio} | {row['required']:.3g} | {met} |")
    return "\n".join(lines)


def test_measured_figures_are_those_of_the_record() -> None:
    page = (DOCS / "which-solver.md").read_text(encoding="utf-8")
    cited = re.search(r"From the records ((?:`[\w-]+`(?:, | and )?)+)", page)
    assert cited is not None
    names = re.findall(r"`([\w-]+)`", cited[1])
    table = draw_measured([ROOT / "benchmarks" / "results" / f"{name}.json" for name in names])
    assert table in page, f"the records give this table:\n{table}"


class Reader(HTMLParser):
    """Names of anchors, targets of links, and what the browser fetches, of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors.update(values[key] for key in ("id", "name") if key in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        # A canonical address is said, not fetched.
        elif tag == "link" and values.get("rel") not in ("canonical", "next", "prev"):
            self.fetched.append(values.get("href", ""))
        elif (key := LOADED.get(tag)) and key in values:
            self.fetched.append(values[key])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built with warnings as errors where no other host can be reached."""
    place = tmp_path_factory.mktemp("site")
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    environment = {k: v for k, v in os.environ.items() if k != "QUADMATCH_RUN_NOTEBOOKS"} | nowhere
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(place)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return place


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Reader]:
    return {path.resolve(): Reader(path) for path in sorted(site.rglob("*.html"))}


def test_every_page_is_there(pages: dict[Path, Reader], site: Path) -> None:
    names = {path.relative_to(site.resolve()).with_suffix("").as_posix() for path in pages}
    assert {*PAGES, "glossary", "own-images", "page", "notebooks/graphs", "notebooks/photographs"} <= names
    assert {path.stem for path in DOCS.glob("*.md")} <= names


def test_nothing_is_fetched_from_another_host(pages: dict[Path, Reader], site: Path) -> None:
    fetched = {f"{path.name}: {url}" for path, one in pages.items() for url in one.fetched}
    assert fetched
    assert not [one for one in fetched if re.search(r": (?:[a-z]+:)?//", one)]
    for path in site.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"@import|url\(\s*[\"']?(?:https?:)?//", text), path
    # The theme fetches diagrams' and formulas' libraries where a page has one, and numbers of a repository.
    for path in pages:
        assert not re.search(r'class="[^"]*(?:mermaid|arithmatex|md-source\b)', path.read_text("utf-8")), path


@pytest.fixture(scope="module")
def open_page() -> Iterator[Any]:
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next((place for name in names if (place := which(name))), None)
    if found is None:
        pytest.skip("there is no chromium")
    play = pytest.importorskip("playwright.sync_api")
    with play.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=found, args=["--no-sandbox"], timeout=160_000)

        def open_one(**options: Any) -> Any:
            page = made.new_page(**options)
            page.set_default_timeout(120_000)
            return page

        yield open_one


def test_the_site_searches_when_opened_from_disk(site: Path, open_page: Any) -> None:
    page = open_page(viewport={"width": 1280, "height": 800})
    page.goto((site / "api" / "types.html").as_uri())
    page.locator(".md-search__input").press_sequentially("sinkhorn")  # The theme listens to keys.
    page.wait_for_selector(".md-search-result__item a", timeout=120_000)
    addresses = page.eval_on_selector_all(".md-search-result__item a", "links => links.map(link => link.href)")
    assert any("/api/solvers.html" in address for address in addresses)
    assert all(Path(unquote(urlparse(address).path)).is_file() for address in addresses)


@pytest.mark.parametrize("name", ["which-solver", "own-images", "models"])
def test_code_does_not_break_inside_a_word_on_a_phone(site: Path, open_page: Any, name: str) -> None:
    page = open_page(viewport={"width": 390, "height": 844})
    page.goto((site / f"{name}.html").as_uri())
    words = """codes => codes.filter(code => /^[^\\s…/]{1,32}$/.test(code.textContent))
        .map(code => [code.textContent, code.getClientRects().length])"""
    lines = page.eval_on_selector_all("p code, td code", words)
    assert len(lines) > 10
    assert not [text for text, count in lines if count > 1]
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_benchmarks_are_one_page_of_what_a_user_asks(site: Path) -> None:
    page = (site / "benchmarks.html").read_text("utf-8")
    records = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(RECORDS.glob("*.json"))}
    found = [(name, row) for name, one in records.items() for row in one["rows"] if "weighted" in row["size"]]
    name, newest = found[-1]
    assert f"{newest['ratio']:.3g} times as fast" in page
    assert ("the bound is 20" in page) == (not newest["met"])  # What a record misses stays.
    assert f"records/{name}.html" in page
    assert {path.stem for path in (site / "records").glob("*.html")} == records.keys()
    # Each question finds its rows: a bench that is renamed must not empty the page.
    rows = re.findall(r"<td>(?:(?!</td>).)*</td>", page.partition('id="bounds-that-are-missed"')[0])
    assert len(rows) > 100


def test_every_link_and_picture_leads_somewhere(pages: dict[Path, Reader], site: Path) -> None:
    broken, checked = [], 0
    for path, reader in pages.items():
        if path.name == "404.html":  # Shown at any address, so its links begin at the root.
            continue
        for url in (*reader.links, *reader.fetched):
            parts = urlparse(url)
            if parts.scheme in ("http", "https", "mailto", "data", "javascript"):
                continue
            checked += 1
            goal = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            goal = goal / "index.html" if goal.is_dir() else goal
            wrong = not goal.is_file()
            if not wrong and parts.fragment and goal in pages and parts.fragment != "__top":
                wrong = unquote(parts.fragment) not in pages[goal].anchors
            if wrong:
                broken.append(f"{path.relative_to(site.resolve())}: {url}")
    assert checked > 500
    assert not broken


def test_the_public_names_are_in_the_reference(pages: dict[Path, Reader], site: Path) -> None:
    import quadmatch

    anchors = {one for path, reader in pages.items() if path.parent.name == "api" for one in reader.anchors}
    documented = {anchor.rpartition(".")[2] for anchor in anchors}
    assert set(quadmatch.__all__) <= documented
