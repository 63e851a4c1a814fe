"""Speed of each method's head in training, beside that of qc-DGM₁: none is to be five times as slow."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from quadmatch.bench.measurement import Row, one_thread, time_both
from quadmatch.bench.training_steps import draw_pairs, train_head
from quadmatch.experiments.build import build_loss
from quadmatch.experiments.reading import read_experiment
from quadmatch.layers.quadratic_constraint import QuadraticConstraint
from quadmatch.methods import METHODS
from quadmatch.reproduce.rows import list_rows

PAIRS, FEWEST, MOST = 8, 3, 13
"""A batch of the published size, and keypoints that pairs of Pascal VOC have in common."""
PEER, REQUIRED = "qcdgm1_voc", 0.2


def run(rounds: int = 5) -> list[Row]:
    """A row for each experiment of the table on Pascal VOC: pairs a second of one thread, heads and losses as there."""
    names = dict.fromkeys(row.experiment for row in list_rows("voc").values() if row.experiment)
    with one_thread():
        return [compare(name, rounds) for name in names]


def compare(name: str, rounds: int) -> Row:
    """Training throughput of an experiment's head, its features cached, over that of qc-DGM₁."""
    step, peer = make_step(name), make_step(PEER)
    step(), peer()  # What is compiled or set up once is no part of a step.
    ours, theirs = (PAIRS / seconds for seconds in time_both(step, peer, rounds=rounds, repeats=1))
    return {
        "name": f"training pairs a second of the head of {name}",
        "size": f"batch {PAIRS}, {FEWEST} to {MOST} keypoints",
        "ours": ours,
        "peer": theirs,
        "ratio": ours / theirs,
        "required": REQUIRED,
        "met": ours / theirs >= REQUIRED,
    }


def make_step(name: str) -> Callable[[], None]:
    """A training step of an experiment's head with its constraint and its loss."""
    experiment = read_experiment(name)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        head: nn.Module = METHODS[experiment.head.method](**experiment.head.options)
    if experiment.constraint is not None:
        head = QuadraticConstraint(head, **experiment.constraint.network)
    return train_head(head, build_loss(experiment), *draw_pairs(PAIRS, FEWEST, MOST))
