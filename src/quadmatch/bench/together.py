"""Training by several processes beside one, each with one thread: the same batches, a share of each for a rank."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

from torch import Tensor

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
PLAIN = (
    "constraint=none",
    "features.level=frozen",
    "head.options.dropout=0",
    "training.optimiser=sgd",
    "training.warmup=0",
)
"""Changes after which processes differ from one by the order of sums alone; a network may still enlarge that."""
COUNTS, STEPS, CLOSE = (2, 3), 20, 2e-6
"""Processes, their steps, and how far a parameter may be from that of one process then."""


def run(steps: int = 7, rounds: int = 2) -> list[Row]:
    """Speed of two processes beside one, and how far parameters of several are from those of one."""
    from safetensors.torch import save_file

    os.environ["OMP_NUM_THREADS"] = "1"
    with TemporaryDirectory() as name:
        folder = Path(name)
        save_file(draw_weights(), folder / "vgg16.safetensors")
        return [time_two(folder, steps, rounds), *compare_parameters(folder)]


def time_two(folder: Path, steps: int, rounds: int) -> Row:
    """Steps a second of two processes beside one, the best of several rounds in turn.

    A busy machine gives two processes twice the time of one. So the row has the processor seconds of rank 0 for a
    step too, which do not depend on who else computes: what the ratio would be with two cores for us alone.
    """
    found: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    for _ in range(rounds):
        for count, results in found.items():
            start_processes(count, __name__, [str(folder), str(steps)])
            results.append(json.loads((folder / "result.json").read_text()))
    alone, two = ({name: min(one[name] for one in found[count]) for name in found[count][0]} for count in (1, 2))
    return {
        "name": "training steps a second, 2 processes × 1 thread beside 1 × 1",
        "size": _describe_size(),
        "ours": 1 / two["wall"],
        "peer": 1 / alone["wall"],
        "ratio": alone["wall"] / two["wall"],
        "processor_seconds_of_a_rank": two["processor"],
        "processor_seconds_alone": alone["processor"],
        "ratio_of_processor_seconds": alone["processor"] / two["processor"],
    }


def compare_parameters(folder: Path, counts: Sequence[int] = COUNTS, steps: int = STEPS) -> list[Row]:
    """Parameters of several processes on shares of a batch beside those of one on all of it, each trained twice."""
    (alone, _), start = _train_twice(folder, 1, steps), _train(folder, 1, 0)
    rows: list[Row] = []
    for count in counts:
        first, second = _train_twice(folder, count, steps)
        apart = _find_largest(first, alone)
        rows.append(
            {
                "name": f"training, largest difference of a parameter after {steps} steps: {count} processes beside 1",
                "size": f"{_describe_size()}, {', '.join(PLAIN)}",
                "ours": apart,
                "required": CLOSE,
                "met": apart <= CLOSE,
                "largest_change_by_training": _find_largest(alone, start),
                "same_bits_twice": _find_largest(first, second) == 0,
            }
        )
    return rows


def _train_twice(folder: Path, count: int, steps: int) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    return _train(folder, count, steps), _train(folder, count, steps)


def _train(folder: Path, count: int, steps: int) -> dict[str, Tensor]:
    """Parameters after so many steps of so many processes."""
    from safetensors.torch import load_file

    start_processes(count, __name__, [str(folder), str(steps), *PLAIN])
    return load_file(folder / "parameters.safetensors")


def _find_largest(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> float:
    return max(float((found[name] - value).abs().max()) for name, value in expected.items())


def _describe_size() -> str:
    return f"{EXPERIMENT}, {CLASSES * OBJECTS} objects, {KEYPOINTS} keypoints"


def train_rank(folder: Path, steps: int, *others: str) -> None:
    """Train as one rank; rank 0 writes the seconds of the quickest step, and the parameters after the last."""
    from safetensors.torch import save_file

    changes = [f"features.cache={folder / 'cache'}", f"features.weights={folder / 'vgg16.safetensors'}"]
    changes += [f"features.precision={PRECISION}", f"training.classes={CLASSES}", f"training.objects={OBJECTS}"]
    experiment = read_experiment(EXPERIMENT, [*changes, *others])
    with join_group() as team:
        matcher = build_matcher(experiment, PRECISION)
        assert isinstance(matcher.features, FeatureExtractor)
        objects = make_objects(CLASSES, OBJECTS, KEYPOINTS)
        trainer = Trainer(experiment, matcher, build_sampler(experiment, matcher.features, objects, team), [], team)
        taken = [_time_step(trainer, step) for step in range(steps)]
        if team.rank == 0:
            # The first step warms up.
            wall, processor = (min(column[1:], default=0.0) for column in zip(*taken)) if taken else (0.0, 0.0)
            write_json(folder / "result.json", {"wall": wall, "processor": processor})
            kept = {name: value.contiguous() for name, value in matcher.state_dict().items()}
            save_file(kept, folder / "parameters.safetensors")


def _time_step(trainer: Trainer, step: int) -> tuple[float, float]:
    """Seconds on the clock and of the processor."""
    began, worked = perf_counter(), process_time()
    trainer.take_step(step)
    return perf_counter() - began, process_time() - worked


if __name__ == "__main__":
    train_rank(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
