"""The processes that train one run together: one alone, or several that share each batch."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn


class TeamError(OSError):
    """The processes cannot train together, or not any more; says which rank noticed and why."""


@runtime_checkable
class Team(Protocol):
    """What training asks of processes that share a run; all call the same methods in the same order."""

    rank: int
    """From 0, which leads: it alone writes into the run's folder."""
    world_size: int
    """Number of processes."""

    def add(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all ranks, in place, with the same bits on every rank."""

    def broadcast(self, text: str) -> str:
        """The text that rank 0 gives; what other ranks give is ignored."""

    def wait(self) -> None:
        """Return when every rank has called this."""


class Alone:
    """One process that trains by itself."""

    rank = 0
    world_size = 1

    def add(self, tensors: Sequence[Tensor]) -> None:
        """Nothing: the sum of one is itself."""

    def broadcast(self, text: str) -> str:
        """The text itself."""
        return text

    def wait(self) -> None:
        """Nothing: there is nobody to wait for."""


def share(team: Team, compute: Callable[[], Any]) -> Any:
    """Call `compute` on rank 0 only, and give its result, which must be JSON, to every rank.

    An error on rank 0 is raised there and stops the other ranks too; else they would wait for ever.
    """
    answer = {}
    try:
        if team.rank == 0:
            answer = {"value": compute()}
    except BaseException as error:
        team.broadcast(json.dumps({"error": f"{type(error).__name__}: {error}"}))
        raise
    answer = json.loads(team.broadcast(json.dumps(answer)))
    if "error" in answer:
        raise TeamError(f"rank {team.rank} stops because rank 0 did: {answer['error']}")
    return answer["value"]


def add_gradients(team: Team, parameters: Sequence[nn.Parameter]) -> None:
    """Replace the gradients by their sums over all ranks.

    A gradient that is missing on some ranks counts as zero there; one that no rank has stays missing.
    """
    if team.world_size == 1:
        return
    present = parameters[0].new_tensor([one.grad is not None for one in parameters])
    gradients = [torch.zeros_like(one) if one.grad is None else one.grad for one in parameters]
    team.add([present, *gradients])
    for parameter, gradient, ranks in zip(parameters, gradients, present.tolist()):
        parameter.grad = gradient if ranks > 0 else None
