"""Objects with made-up keypoints and no picture, for tests of pairs."""

import random
from dataclasses import replace

import numpy as np

from quadmatch.datasets.annotation import Annotation

VOCABULARY = tuple("abcdefghij")


def make_objects(count=30, kinds=4, least=0, seed=0):
    """Objects with some of ten keypoints each, at places that are all different."""
    numbers = random.Random(seed)
    objects = []
    for place in range(count):
        names = tuple(numbers.sample(VOCABULARY, numbers.randint(least, 10)))
        points = np.array([[numbers.uniform(0, 90), numbers.uniform(0, 70)] for _ in names]).reshape(-1, 2)
        kind = f"kind{place % kinds}"
        objects.append(Annotation(f"{kind}/{place:03d}", kind, no_picture, (0.0, 0.0, 90.0, 70.0), names, points))
    return objects


def sort_keypoints(one):
    order = sorted(range(len(one.names)), key=lambda place: one.names[place])
    return replace(one, names=tuple(one.names[place] for place in order), points=one.points[order])


def no_picture():
    raise AssertionError("pairs need no picture")


def shuffled(objects, seed=1):
    again = list(objects)
    random.Random(seed).shuffle(again)
    return again
