"""A figure in a table of README or documentation is in a record, or it is not there."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest
from quoted_figures import (
    draw_classes,
    draw_compared,
    draw_few_points,
    draw_forms,
    draw_gains,
    draw_iterations,
    draw_methods,
    draw_photographs,
    draw_readings,
    draw_readme,
    draw_scores,
    draw_throughput,
    draw_transfer,
    draw_validation,
    draw_voc_constraint,
    draw_voc_test,
    draw_willow,
    draw_willow_constraint,
)
from quoted_sentences import SENTENCES

ROOT = Path(__file__).parents[2]
TABLES = {
    "README.md": [draw_readme],
    "docs/reproducing.md": [draw_voc_test, draw_readings],
    "docs/learned.md": [draw_willow_constraint, draw_voc_constraint],
    "docs/models.md": [draw_photographs],
    "docs/results.md": [
        draw_willow,
        partial(draw_compared, "willow-plain", "willow", "voc-reduced"),
        draw_gains,
        partial(draw_throughput, "2026-11-18T022802"),
        draw_iterations,
        partial(draw_methods, "voc-reduced", "Pascal VOC, validation, 150 steps, one seed, accuracy"),
    ],
    "docs/features.md": [partial(draw_forms, "2026-11-18T022419")],
    "docs/own-images.md": [draw_scores, draw_transfer, draw_few_points],
    "docs/beyond.md": [
        draw_validation,
        partial(draw_methods, "beyond", "Pascal VOC, validation, accuracy"),
        partial(draw_methods, "beyond-f1", "Pascal VOC, validation, F1 of all keypoints"),
        partial(draw_compared, "beyond"),
        partial(draw_methods, "beyond-willow", "Willow, test, three seeds, accuracy"),
    ],
}
FIGURE = re.compile(r"\b\d\d\.\d")


@pytest.mark.parametrize("page", TABLES)
def test_tables_are_those_of_the_records(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for draw in TABLES[page]:
        table = draw()
        assert table in text, f"{page}: the records give this table:\n{table}"
        text = text.replace(table, "")
    rest = [line for line in text.splitlines() if line.startswith("|") and FIGURE.search(line)]
    assert not rest, f"{page}: no record is known to this test of the figures in {rest}"


@pytest.mark.parametrize("page", SENTENCES)
def test_sentences_say_what_the_records_do(page: str) -> None:
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    for draw in SENTENCES[page]:
        assert draw() in text, f"{page}: the records give: {draw()}"


@pytest.mark.parametrize(
    ("page", "kind", "published", "metric"),
    [("voc-test", "", "voc-accuracy", "accuracy"), ("voc-test-f1", "-unfiltered", "voc-f1", "f1")],
)
def test_class_by_class_it_is_the_record(page: str, kind: str, published: str, metric: str) -> None:
    expected = draw_classes(kind, published, metric)
    assert (ROOT / "results" / f"{page}.md").read_text(encoding="utf-8") == expected, expected
