"""Annotations → a filled FeatureStore → Features, each image's convolutions computed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from quadmatch.datasets.annotation import Annotation, load_crop, read_picture
from quadmatch.datasets.pixels import is_plain
from quadmatch.datasets.views import ObjectView
from quadmatch.features.cache import FeatureStore, hash_entry
from quadmatch.features.extractor import FeatureExtractor
from quadmatch.features.prepared import IMAGES, extract_crops
from quadmatch.features.trunk import join_entries
from quadmatch.matching import Features

Progress = Callable[[int, int], None]


def name_entry(annotation: Annotation) -> str:
    """A name that changes with the image's content, the crop (mirrored or not) and the keypoints, nothing else."""
    if isinstance(annotation.image, Path):
        name = hash_entry(annotation.image.read_bytes(), annotation.box, annotation.points)
        # Stores of version 0.1.0 hold such pictures as they were read then: neither turned nor on white.
        name += "" if is_plain(annotation.image, annotation.name) else " upright"
    else:
        drawn = annotation.image
        content = drawn.identify() if isinstance(drawn, ObjectView) else read_picture(annotation)
        name = hash_entry(content, annotation.box, annotation.points)
    return f"{name} mirrored" if annotation.mirrored else name


def fill_store(
    store: FeatureStore,
    extractor: FeatureExtractor,
    annotations: Sequence[Annotation],
    *,
    batch: int = IMAGES,
    progress: Progress | None = None,
) -> list[str]:
    """Extract what the store has not yet, and return each annotation's name in it."""
    names = [name_entry(annotation) for annotation in annotations]
    wanted = dict(zip(names, annotations))
    missing = store.missing(names)
    crops = (load_crop(wanted[name], extractor.size) for name in missing)
    with store:
        entries = extract_crops(extractor, crops, together=batch)
        for done, (name, (entry, _)) in enumerate(zip(missing, entries), len(names) - len(missing) + 1):
            store.add(name, entry)
            if progress:
                progress(done, len(names))
    return names


def read_features(store: FeatureStore, extractor: FeatureExtractor, names: Sequence[str]) -> Features:
    """Features of the named objects, on the extractor's device, with gradients for what it trains."""
    if not names:
        raise ValueError("names is empty: features need at least one object")
    device = next((one.device for one in extractor.parameters()), torch.device("cpu"))
    features: Features = extractor(*join_entries([store.get(name) for name in names], extractor.single, device))
    return features
