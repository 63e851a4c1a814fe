"""What is there of a data set: objects of each category in each split, and what is missing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from quadmatch.datasets import DATASETS
from quadmatch.datasets.annotation import Annotation, read_picture

EXPECTED: dict[str, dict[str, int]] = {
    "willow": {"trainval": 100, "test": 204},
    "pascal-voc": {"trainval": 7020, "test": 1682},
}
"""Objects that the complete data set has after the field's filter."""


@dataclass(frozen=True)
class SplitSurvey:
    """One split: counts, or why it cannot be used."""

    split: str
    objects: dict[str, int]
    keypoints: dict[str, int]
    problems: tuple[str, ...] = ()
    """A split is usable with objects, though some may have a problem."""


def survey(
    name: str, root: Path | str | None = None, *, pictures: bool = False, **options: object
) -> list[SplitSurvey]:
    """Look at the splits of a data set; with `pictures`, decode each picture to find broken ones."""
    if name not in DATASETS:
        raise ValueError(f"name must be one of {', '.join(DATASETS)}; got {name!r}")
    return [_survey(name, root, split, pictures, options) for split in ("train", "validation", "test")]


def _survey(name: str, root: Path | str | None, split: str, pictures: bool, options: dict[str, object]) -> SplitSurvey:
    try:
        found = DATASETS[name](root, split, **options)
    except (OSError, ValueError, ImportError) as error:
        return SplitSurvey(split, {}, {}, (str(error),))
    objects = Counter(one.category for one in found)
    keypoints: Counter[str] = Counter()
    for one in found:
        keypoints[one.category] += len(one.names)
    return SplitSurvey(split, dict(objects), dict(keypoints), tuple(_find_problems(found, pictures)))


def _find_problems(found: list[Annotation], pictures: bool) -> list[str]:
    """Each picture that is missing or, if asked for, cannot be decoded."""
    problems = []
    for one in {one.image: one for one in found if isinstance(one.image, Path)}.values():
        if not Path(str(one.image)).is_file():
            problems.append(f"missing: {one.image}")
        elif pictures:
            try:
                read_picture(one)
            except ValueError as error:
                problems.append(str(error))
    return problems


def compare(name: str, surveys: list[SplitSurvey]) -> list[str]:
    """How the counts differ from the complete data set's, where these are known."""
    counts = {one.split: sum(one.objects.values()) for one in surveys}
    counts["trainval"] = counts["train"] + counts["validation"]
    remarks = []
    for split, expected in EXPECTED.get(name, {}).items():
        if counts[split] not in (0, expected):
            remarks.append(f"{split}: {counts[split]} objects where the complete data set has {expected}")
    return remarks
