"""What an experiment's tables say reaches the parts that they stand for."""

from __future__ import annotations

import pytest
import torch
from random_pairs import random_pair
from tiny_experiment import tiny_experiment, write_tiny

from quadmatch import Matching
from quadmatch.experiments.build import build_loss, build_matcher
from quadmatch.experiments.reading import read_experiment
from quadmatch.losses import LOSSES
from quadmatch.matching import Stage
from quadmatch.solvers.linear.sinkhorn import sinkhorn


@pytest.mark.parametrize(
    "options", [{"alpha": 1.2}, {"beta": 0.9}, {"reading": "released"}, {"earlier": 0.4}, {"earlier": 0.0}]
)
def test_options_of_the_loss_are_used(options: dict[str, object]) -> None:
    pair, *_ = random_pair(5, 7, seed=3)
    generator = torch.Generator().manual_seed(0)
    noise = [torch.rand(1, 5, 7, generator=generator, dtype=torch.float64) for _ in range(2)]
    soft = [0.8 * sinkhorn(scores, pair.mask) for scores in noise]  # so that false and missing matches differ
    matching = Matching(soft[0], soft[0], pair.source.adjacency, pair.target.adjacency, (Stage(soft[1], soft[1]),))
    usual = read_experiment("qcdgm1_willow").loss.options
    changed = usual | options
    changes = [f"loss.options.{name}={value}" for name, value in options.items()]
    found = build_loss(read_experiment("qcdgm1_willow", changes))(matching, pair)
    assert torch.equal(found, LOSSES["false_matching"](**changed)(matching, pair))
    assert not torch.equal(found, LOSSES["false_matching"](**usual)(matching, pair))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory):
    return write_tiny(tmp_path_factory.mktemp("tiny"))


def test_the_constraint_and_decoding_reach_the_matcher(folder) -> None:
    changes = [
        "constraint.network={ weight = 0.3, temperature = 0.7, step = 'line_search', detach = true, share = 0.2 }"
    ]
    changes += ["constraint.decoding={ weight = 0.2, algorithm = 'released' }", "decoding.threshold=0.45"]
    changes += ["decoding.local_maps=0.25"]
    matcher = build_matcher(tiny_experiment(folder, changes))
    assert matcher.constraint.solver == {"weight": 0.3, "temperature": 0.7, "step": "line_search", "detach": True}
    assert matcher.constraint.share == 0.2
    assert matcher.decoding == {"weight": 0.2, "algorithm": "released"}
    assert (matcher.threshold, matcher.local_maps) == (0.45, 0.25)
    decoded = build_matcher(tiny_experiment(folder, [*changes, "constraint.learned=false"]))
    assert (decoded.constraint, decoded.decoding) == (None, matcher.decoding)
    without = build_matcher(tiny_experiment(folder, ["constraint=none"]))
    assert (without.constraint, without.decoding) == (None, None)
