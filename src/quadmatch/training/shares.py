"""A batch shared out over the ranks of a team, and their answers put together: as one rank would have it all.

Every rank computes the loss of the whole batch, with gradients through its own pairs only. So the gradients of
all ranks add up to those of the whole batch, whatever the loss divides by.
"""

from __future__ import annotations

import torch
from torch import Tensor

from quadmatch.features.prepared import Stored
from quadmatch.graph import PairBatch
from quadmatch.matching import Matching
from quadmatch.training.team import Team


def take_share(stored: Stored, batch: PairBatch, single: frozenset[str], team: Team) -> tuple[Stored, PairBatch]:
    """This rank's pairs of a batch, and what is kept of their objects; a rank for which none is left has one.

    Pairs lie class by class: neighbours share their objects, and an object goes to one rank, seldom to two.
    """
    if team.world_size == 1:
        return stored, batch
    first, last = _find_share(len(batch.source), team)
    own = batch.map(lambda one: one[first : max(last, first + 1)])
    objects, places = torch.unique(torch.cat([own.source, own.target]), return_inverse=True)
    chosen = objects.tolist()

    def select(part: str, values: Tensor) -> Tensor:
        if part in single:
            return values[objects]
        rows = torch.split(values, list(stored.counts))
        return torch.cat([rows[place] for place in chosen])

    kept = {part: select(part, values) for part, values in stored.arrays.items()}
    source, target = places.view(2, -1)
    shared = PairBatch(own.pairs, source, target, own.source_nodes, own.target_nodes)
    return Stored(kept, [stored.counts[place] for place in chosen]), shared


def join_shares(matching: Matching, pairs: int, team: Team) -> Matching:
    """The matching of the whole batch of so many pairs, from every rank's; what others computed is constant."""
    if team.world_size == 1:
        return matching
    first, last = _find_share(pairs, team)
    wholes: list[Tensor] = []

    def place(one: Tensor) -> Tensor:
        whole = one.new_zeros(pairs, *one.shape[1:])
        whole[first:last] = one.detach()[: last - first]
        wholes.append(whole)
        return whole

    matching.map(place)
    team.add(wholes)
    others = iter(wholes)

    def insert(one: Tensor) -> Tensor:
        whole = next(others)
        return torch.cat([whole[:first], one[: last - first], whole[last:]])

    return matching.map(insert)


def _find_share(pairs: int, team: Team) -> tuple[int, int]:
    """First and last of a rank's pairs, the last not included; shares differ by one pair at most."""
    return team.rank * pairs // team.world_size, (team.rank + 1) * pairs // team.world_size
