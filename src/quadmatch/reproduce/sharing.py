"""Rows of a table shared out over the workers of a cluster; one process then finds them done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from quadmatch.datasets.annotation import Annotation
from quadmatch.experiments.build import build_features, load_split, open_store
from quadmatch.experiments.schema import DataSection, FeaturesSection
from quadmatch.experiments.training_schema import TrainingSection
from quadmatch.features.extractor import FeatureExtractor
from quadmatch.features.prepared import IMAGES
from quadmatch.features.store_features import fill_store
from quadmatch.launch.calls import Share, start_callers
from quadmatch.launch.cluster import Cluster
from quadmatch.reproduce.items import Settings, Table
from quadmatch.reproduce.reuse import name_run, read_row
from quadmatch.reproduce.tables import Step, list_steps, name_turn, reproduce_row
from quadmatch.training.sampling import extend_objects

SHARES = 32
"""Parts into which the objects of a split are divided, for workers to compute their features."""
SEEN = {"flip", "outliers", "views", "view_objects", "copies", "copy_strength", "between"}
"""Keys of the table `[training]` that say which pictures training sees."""


def share_rows(table: Table, settings: Settings, cluster: Cluster) -> None:
    """Train and evaluate the rows on a cluster; runs and evaluations are then in the settings' folder."""
    groups = list(group_by_run(table, list_steps(table, settings), settings).values())
    # Workers may have another working folder, and what they say is not seen.
    root = settings.root and settings.root.absolute()
    silent = replace(settings, out=settings.out.absolute(), root=root, say=_say_nothing, cluster=None)
    names = [", ".join(label + name_turn(table, seed) for label, seed in group) for group in groups]
    needs = list(dict.fromkeys(list_needs(table, silent)))
    with start_callers(cluster, max(len(groups), SHARES * len(needs))) as share:
        settings.say(f"features of {share_features(needs, share)} objects computed, each by one worker")
        calls = [(table, group, silent) for group in groups]
        for number, (place, _) in enumerate(share(reproduce_steps, calls, names), 1):
            settings.say(f"{number} of {len(groups)} done: {names[place]}")


def group_by_run(table: Table, steps: Sequence[Step], settings: Settings) -> dict[str, list[Step]]:
    """Steps that use one run together: it is trained once, by whoever has them all."""
    groups: dict[str, list[Step]] = {}
    for label, seed in steps:
        row = table.rows[label]
        name = f"model {row.model}" if row.experiment is None else f"run {name_run(row, seed or 0, settings)}"
        groups.setdefault(name, []).append((label, seed))
    return groups


def reproduce_steps(table: Table, steps: Sequence[Step], settings: Settings) -> None:
    """Train and evaluate some steps, or find them done."""
    for label, seed in steps:
        reproduce_row(table, table.rows[label], seed, settings)


@dataclass(frozen=True)
class Need:
    """Features that rows need: of all objects of the split that they are trained on."""

    data: str
    """The data set, as an experiment's table in JSON."""
    features: str
    split: str
    seen: str
    """How training looks at the objects: those keys of the table `[training]` on which `extend_objects` depends."""


def share_features(needs: Sequence[Need], share: Share) -> int:
    """Compute what rows need of pictures before several of them would at once; how many objects it took."""
    calls = [(need, part) for need in needs for part in range(SHARES)]
    names = [f"features of the split {need.split}, part {part + 1} of {SHARES}" for need, part in calls]
    return sum(found for _, found in share(fill_share, calls, names))


def list_needs(table: Table, settings: Settings) -> Iterator[Need]:
    """What the rows that are trained need, the same need perhaps several times."""
    for row in table.rows.values():
        if row.experiment is not None:
            experiment = read_row(row, 0, settings)
            data, features = experiment.data, experiment.features.model_dump_json()
            # What features do not depend on is left out, so that equal needs are equal.
            described = data.model_dump_json(include={"name", "root", "size", "options"})
            yield Need(described, features, data.split, experiment.training.model_dump_json(include=SEEN))


def fill_share(need: Need, part: int) -> int:
    """Compute a part of the features that are needed and not there; how many.

    Objects that one process would put through the network together stay together: their last bits depend on it.
    """
    extractor, objects = _load_objects(need)
    starts = range(part * IMAGES, len(objects), SHARES * IMAGES)
    own = [one for start in starts for one in objects[start : start + IMAGES]]
    store = open_store(extractor, FeaturesSection.model_validate_json(need.features).cache)
    before = len(store)
    fill_store(store, extractor, own)
    return len(store) - before


@lru_cache(maxsize=1)
def _load_objects(need: Need) -> tuple[FeatureExtractor, list[Annotation]]:
    """What computes the features, and the objects; a worker has several shares of them."""
    data, features = DataSection.model_validate_json(need.data), FeaturesSection.model_validate_json(need.features)
    objects = load_split(data, need.split)
    seen = extend_objects(objects, TrainingSection.model_validate_json(need.seen), data.size)
    return build_features(features, data.size), seen


def _say_nothing(line: str) -> None:
    """For workers, whom nobody hears."""
