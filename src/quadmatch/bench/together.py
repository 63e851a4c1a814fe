"""Training by two processes beside one, each with one thread: the same batches, half of each for a rank."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

from quadmatch.bench.measurement import Row
from quadmatch.bench.training import PRECISION, draw_weights
from quadmatch.bench.training_steps import make_objects
from quadmatch.experiments.build import build_matcher
from quadmatch.experiments.reading import read_experiment
from quadmatch.features.extractor import FeatureExtractor
from quadmatch.files import write_json
from quadmatch.launch.group import join_group
from quadmatch.launch.processes import start_processes
from quadmatch.training.sampling import build_sampler
from quadmatch.training.trainer import Trainer

EXPERIMENT, CLASSES, OBJECTS, KEYPOINTS = "qcdgm2_voc", 8, 4, 10


def run(steps: int = 6, rounds: int = 2) -> list[Row]:
    """Steps a second of two processes beside one, the best of several rounds in turn.

    A busy machine gives two processes twice the time of one. So the row has the processor seconds of rank 0 for a
    step too, which do not depend on who else computes: what the ratio would be with two cores for us alone.
    """
    from safetensors.torch import save_file

    os.environ["OMP_NUM_THREADS"] = "1"
    found: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    with TemporaryDirectory() as folder:
        save_file(draw_weights(), Path(folder) / "vgg16.safetensors")
        for _ in range(rounds):
            for count, results in found.items():
                start_processes(count, __name__, [folder, str(steps)])
                results.append(json.loads((Path(folder) / "result.json").read_text()))
    alone, two = ({name: min(one[name] for one in found[count]) for name in found[count][0]} for count in (1, 2))
    row: Row = {
        "name": "training steps a second, 2 processes × 1 thread beside 1 × 1",
        "size": f"{EXPERIMENT}, {CLASSES * OBJECTS} objects, {KEYPOINTS} keypoints",
        "ours": 1 / two["wall"],
        "peer": 1 / alone["wall"],
        "ratio": alone["wall"] / two["wall"],
        "processor_seconds_of_a_rank": two["processor"],
        "processor_seconds_alone": alone["processor"],
        "ratio_of_processor_seconds": alone["processor"] / two["processor"],
    }
    return [row]


def measure_rank(folder: Path, steps: int) -> None:
    """Train as one rank; rank 0 writes the seconds of the quickest step after one that warms up."""
    changes = [f"features.cache={folder / 'cache'}", f"features.weights={folder / 'vgg16.safetensors'}"]
    changes += [f"features.precision={PRECISION}", f"training.classes={CLASSES}", f"training.objects={OBJECTS}"]
    experiment = read_experiment(EXPERIMENT, changes)
    with join_group() as team:
        matcher = build_matcher(experiment, PRECISION)
        assert isinstance(matcher.features, FeatureExtractor)
        objects = make_objects(CLASSES, OBJECTS, KEYPOINTS)
        trainer = Trainer(experiment, matcher, build_sampler(experiment, matcher.features, objects, team), [], team)
        trainer.take_step(0)
        taken = []
        for step in range(1, steps + 1):
            began, worked = perf_counter(), process_time()
            trainer.take_step(step)
            taken.append((perf_counter() - began, process_time() - worked))
        if team.rank == 0:
            wall, processor = (min(column) for column in zip(*taken))
            write_json(folder / "result.json", {"wall": wall, "processor": processor})


if __name__ == "__main__":
    measure_rank(Path(sys.argv[1]), int(sys.argv[2]))
