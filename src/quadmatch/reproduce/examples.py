"""Matched pairs as pictures, right and wrong told apart (figure 7), and one without and with the constraint (1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from quadmatch.datasets.annotation import Annotation, find_box, read_picture
from quadmatch.datasets.photo_pairs import PicturePair, list_photo_pairs
from quadmatch.drawing.examples import draw_examples, draw_two_ways
from quadmatch.reproduce.items import Output, Settings
from quadmatch.result import MatchResult

MODEL = "qcdgm1-voc"
LEAST = 6
"""Keypoints that an example needs."""
TRIED = 4
"""Pairs of a class among which the one is chosen in which the constraint changes most."""
SHOWN = {"willow": ("test", ("Car", "Duck", "Motorbike")), "pascal-voc": ("validation", ("bird", "bus", "horse"))}
"""Split and classes that are shown of each data set."""

Source = Callable[[Settings], list[PicturePair]]


def list_dataset_pairs(settings: Settings) -> list[PicturePair]:
    """The first pairs of some classes of both data sets; what they show is not ours to hand on."""
    from quadmatch.datasets.pairs import draw_test_pairs
    from quadmatch.experiments.build import load_split
    from quadmatch.experiments.schema import DataSection

    found = []
    for dataset, (split, classes) in SHOWN.items():
        objects = load_split(DataSection(name=dataset, root=settings.root), settings.split or split)
        kept = [one for one in objects if one.category in classes]
        drawn = draw_test_pairs(kept, "intersection", seed=0, pairs_per_class=50)
        for category in classes:
            pairs = [pair_objects(kept[one.source], kept[one.target]) for one in drawn if one.category == category]
            found += [pair for pair in pairs if len(pair.truth) >= LEAST][:TRIED]
    return found


def pair_objects(a: Annotation, b: Annotation) -> PicturePair:
    """Two objects cut out of their pictures, with the keypoints that both have, in the second in another order."""
    common = sorted(set(a.names) & set(b.names))
    order = np.random.default_rng(len(common)).permutation(len(common))
    sides = []
    for one, names in ((a, common), (b, [common[place] for place in order])):
        picture, points = read_picture(one), one.points[[one.names.index(name) for name in names]]
        x0, y0, x1, y1 = (round(side) for side in find_box(one))
        x0, y0 = max(x0, 0), max(y0, 0)
        sides.append((picture[y0 : max(y1, y0 + 1), x0 : max(x1, x0 + 1)], points - [x0, y0]))
    return PicturePair(f"{a.category}/{a.name}", *sides[0], *sides[1], np.argsort(order))


def list_photographs(settings: Settings) -> list[PicturePair]:
    """Warped photographs that come with scikit-image: these may be shown anywhere."""
    return list(list_photo_pairs(TRIED, keypoints=14, strength=2.0))


def match_pairs(pairs: Sequence[PicturePair]) -> tuple[list[MatchResult], list[MatchResult]]:
    """Every pair with the constraint and without, from one pass of the network."""
    from quadmatch.demo.photographs import match_both_ways
    from quadmatch.models.load import load

    return match_both_ways(load(MODEL), pairs)


def _count(pairs: Sequence[PicturePair], results: Sequence[MatchResult]) -> list[int]:
    return [pair.count_right(np.asarray(result.pairs)) for pair, result in zip(pairs, results)]


def make_examples(source: Source, settings: Settings) -> Output:
    """The first pair of each class or photograph, matched."""
    pairs = source(settings)
    firsts = {pair.name.partition("/")[0]: pair for pair in reversed(pairs)}
    shown = [firsts[name] for name in dict.fromkeys(pair.name.partition("/")[0] for pair in pairs)]
    settings.say(f"{MODEL} on {len(shown)} pairs")
    results, _ = match_pairs(shown)
    right = _count(shown, results)
    lines = [["pair", "right", "of"]]
    lines += [[pair.name, str(count), str(len(pair.truth))] for pair, count in zip(shown, right)]
    caption = f"Model {MODEL}, the first pair of each; points of a pair have one colour and number, crosses are wrong."
    record = {"model": MODEL, "pairs": [dict(zip(("name", "right", "points"), line)) for line in lines[1:]]}
    return Output("Matched pairs (figure 7)", caption, lines, record, draw_examples(shown, results))


def make_two_ways(source: Source, settings: Settings) -> Output:
    """The pair in which the constraint changes most, without it and with it."""
    pairs = source(settings)
    settings.say(f"{MODEL} on {len(pairs)} pairs, without and with the constraint")
    constrained, free = match_pairs(pairs)
    counts = {"without the constraint": _count(pairs, free), "with the constraint": _count(pairs, constrained)}
    without, with_it = (np.array(values) for values in counts.values())
    place = int(np.argmax(np.abs(with_it - without)))
    pair = pairs[place]
    lines = [["way", "right in this pair", "right in all pairs"]]
    total = sum(len(one.truth) for one in pairs)
    for way, values in counts.items():
        lines.append([way, f"{values[place]} of {len(pair.truth)}", f"{sum(values)} of {total}"])
    caption = (
        f"Model {MODEL}, {pair.name}: of {len(pairs)} pairs the one in which the constraint changes most, to better or "
        "worse. In the matrices predicted pairs are black and true ones framed red."
    )
    record: dict[str, Any] = {"model": MODEL, "pair": pair.name, "pairs": len(pairs), "right": counts}
    figure = draw_two_ways(pair, dict(zip(counts, (free[place], constrained[place]))))
    return Output("One pair without and with the quadratic constraint (figure 1)", caption, lines, record, figure)


def show_datasets(settings: Settings) -> Output:
    """Figure 7 from both data sets."""
    return make_examples(list_dataset_pairs, settings)


def compare_datasets(settings: Settings) -> Output:
    """Figure 1 from both data sets."""
    return make_two_ways(list_dataset_pairs, settings)


def show_photographs(settings: Settings) -> Output:
    """Figure 7 with photographs that may be handed on."""
    return make_examples(list_photographs, settings)


def compare_photographs(settings: Settings) -> Output:
    """Figure 1 with photographs that may be handed on."""
    return make_two_ways(list_photographs, settings)
