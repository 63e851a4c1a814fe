"""A figure in a table of README or documentation is in a record, or it is not there."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest
from quoted_costs import FORMS
from quoted_figures import (
    draw_articulated,
    draw_classes,
    draw_compared,
    draw_few_points,
    draw_forms,
    draw_gains,
    draw_gains_with_outliers,
    draw_growth,
    draw_halves,
    draw_hardened,
    draw_iterations,
    draw_left_out,
    draw_local_maps,
    draw_losses,
    draw_losses_tried,
    draw_methods,
    draw_models_anew,
    draw_outliers,
    draw_photographs,
    draw_places,
    draw_readings,
    draw_readme,
    draw_scores,
    draw_throughput,
    draw_together,
    draw_transfer,
    draw_unseen,
    draw_validation,
    draw_views,
    draw_voc_constraint,
    draw_voc_test,
    draw_willow,
    draw_willow_constraint,
    draw_willow_readings,
)
from quoted_sentences import SENTENCES
from stated_numbers import STATED

ROOT = Path(__file__).parents[2]
TABLES = {
    "README.md": [draw_readme],
    "docs/reproducing.md": [draw_voc_test, draw_readings],
    "docs/learned.md": [draw_willow_constraint, draw_voc_constraint, draw_losses_tried],
    "docs/models.md": [draw_photographs, draw_local_maps],
    "docs/results.md": [
        draw_willow,
        partial(draw_compared, "willow-plain", "willow", "voc-reduced", "voc-finalists"),
        draw_gains,
        partial(draw_throughput, "2026-11-18T022802"),
        draw_iterations,
        draw_gains_with_outliers,
        partial(draw_methods, "voc-reduced", "Pascal VOC, validation, 150 steps, three seeds, accuracy"),
        partial(draw_methods, "voc-finalists", "Pascal VOC, validation, 1,500 steps, one seed, accuracy"),
        partial(draw_methods, "voc-validation", "Pascal VOC, validation, trained in full, one seed, accuracy"),
        partial(draw_methods, "ablation", "qc-DGM₁ on Pascal VOC, validation, 150 steps, accuracy"),
        partial(draw_compared, "ablation"),
        partial(draw_methods, "willow-after-voc", "Willow after Pascal VOC, test, 150 and 150 steps, accuracy"),
        partial(draw_methods, "voc-f1-reduced", "Pascal VOC, validation, 150 steps, F1 of all keypoints"),
        draw_losses,
        draw_models_anew,
        draw_willow_readings,
    ],
    "docs/features.md": [partial(draw_forms, FORMS)],
    "docs/own-images.md": [draw_scores, draw_transfer, draw_few_points],
    "docs/scaling.md": [
        partial(draw_growth, "2026-11-16T050819", "ours_seconds", 1000),
        partial(draw_growth, "2026-11-16T050819", "peak_megabytes", 1),
    ],
    "docs/beyond.md": [
        draw_validation,
        partial(draw_methods, "beyond", "Pascal VOC, validation, accuracy"),
        partial(draw_methods, "beyond-f1", "Pascal VOC, validation, F1 of all keypoints"),
        partial(draw_compared, "beyond"),
        partial(draw_methods, "beyond-ladder", "Pascal VOC, validation, 300 steps, accuracy"),
        partial(draw_compared, "beyond-ladder"),
        partial(draw_methods, "beyond-ladder-seeds", "Pascal VOC, validation, 300 steps, three seeds, accuracy"),
        partial(draw_compared, "beyond-ladder-seeds"),
        partial(draw_methods, "beyond-ladder-more", "Pascal VOC, validation, 300 steps, tried on top, accuracy"),
        partial(draw_compared, "beyond-ladder-more"),
        draw_outliers,
        draw_hardened,
        draw_views,
        draw_places,
        draw_together,
        draw_unseen,
        draw_left_out,
        partial(draw_methods, "beyond-willow", "Willow, test, three seeds, accuracy"),
        draw_halves,
        draw_articulated,
    ],
}
FIGURE = re.compile(r"\b\d\d\.\d")
MEASURED = re.compile(
    r"(?<![\w.,])(?:\d\d\.\d+|\d+\.\d+ points"
    r"|\d[\d,.]*\s?(?:%|×(?!\s?\d)|(?:times|s|ms|µs|seconds?|minutes?|hours?)\b))"
)
"""Accuracies, percentages, ratios, times and differences, as sentences have them."""
PAGES = ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]


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


def strip_page(page: str) -> str:
    """The sentences of a page in one line, without code, tables, links and names of files."""
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    lines = (line for line in text.splitlines() if not line.startswith("|"))
    return " ".join(re.sub(r"\]\([^)]*\)", "]", " ".join(lines)).split())


@pytest.mark.parametrize("page", PAGES)
def test_no_sentence_has_a_figure_of_its_own(page: str) -> None:
    text = strip_page(page)
    drawn = [re.sub(r"\]\([^)]*\)", "]", draw()) for draw in SENTENCES.get(page, [])]
    for known in (*drawn, *STATED.get(page, [])):
        text = text.replace(known, "")
    text = re.sub(r"`[^`]*`", "`…`", text)
    found = [text[max(0, one.start() - 60) : one.end() + 20] for one in MEASURED.finditer(text)]
    assert not found, f"{page}: tie these figures to a record in quoted_sentences.py, or take them out: {found}"


@pytest.mark.parametrize("page", STATED)
def test_stated_numbers_are_on_their_page(page: str) -> None:
    assert [known for known in STATED[page] if known not in strip_page(page)] == []


@pytest.mark.parametrize(
    "text",
    ["It has 84.8.", "It takes 3 s.", "It is 1.8 times as fast.", "12 % of them", "0.3 points more", "It is 3×."],
)
def test_a_figure_is_found(text: str) -> None:
    assert MEASURED.search(text)


@pytest.mark.parametrize(
    ("page", "kind", "published", "metric"),
    [("voc-test", "", "voc-accuracy", "accuracy"), ("voc-test-f1", "-unfiltered", "voc-f1", "f1")],
)
def test_class_by_class_it_is_the_record(page: str, kind: str, published: str, metric: str) -> None:
    expected = draw_classes(kind, published, metric)
    assert (ROOT / "results" / f"{page}.md").read_text(encoding="utf-8") == expected, expected
