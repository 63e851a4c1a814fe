"""A team made of `torch.distributed`: found in the variables that torchrun sets, joined and left again."""

from __future__ import annotations

import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import torch

# Imported before there is a group: its functions' default arguments would keep one that is there, and its threads,
# alive until the interpreter ends, and a thread that lets go of a tensor then ends the process by a signal.
import torch.distributed.nn.functional
from torch import Tensor, distributed
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from quadmatch.training.team import Alone, Team, TeamError

SIZE, ADDRESS = ("RANK", "WORLD_SIZE"), ("MASTER_ADDR", "MASTER_PORT")
"""What torchrun tells each process."""


class Group:
    """The processes of `torch.distributed`, after its `init_process_group` was called in each."""

    def __init__(self) -> None:
        self.rank, self.world_size = distributed.get_rank(), distributed.get_world_size()

    def add(self, tensors: Sequence[Tensor]) -> None:
        """One sum over all tensors, which costs one message instead of one for each."""
        flat = torch.cat([one.detach().reshape(-1) for one in tensors])
        with self._together():
            distributed.all_reduce(flat)
        for one, total in zip(tensors, torch.split(flat, [one.numel() for one in tensors])):
            one.detach().copy_(total.view(one.shape))

    def broadcast(self, text: str) -> str:
        """As bytes, never as pickled objects: a message can do no more than be read."""
        content = torch.tensor(list(text.encode()), dtype=torch.uint8)
        size = torch.tensor([len(content)])
        with self._together():
            distributed.broadcast(size, 0)
            if self.rank:
                content = torch.empty(int(size), dtype=torch.uint8)
            distributed.broadcast(content, 0)
        return bytes(content.tolist()).decode()

    def wait(self) -> None:
        """A sum that nobody needs; a barrier might be held on a device that is not used."""
        self.add([torch.zeros(1)])

    @contextmanager
    def _together(self) -> Iterator[None]:
        """Within, all ranks are needed; if one is gone, the error says so."""
        try:
            yield
        except RuntimeError as error:
            lost = f"rank {self.rank} lost another of the {self.world_size} ranks"
            raise TeamError(f"{lost}: {_shorten(error)}") from error


def is_launched() -> bool:
    """Whether torchrun, or whoever sets the same variables, started this process as one of several."""
    return all(name in os.environ for name in SIZE)


@contextmanager
def join_group(seconds: float = 60.0) -> Iterator[Team]:
    """A context with the team that this process was launched for; waits so many seconds for the other ranks.

    Messages go by gloo, those between GPUs by NCCL. A process that was not launched is a team alone.
    """
    if not is_launched():
        yield Alone()
        return
    if "TORCHELASTIC_RUN_ID" in os.environ:
        threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    _meet(*_read_place(), seconds)
    try:
        yield Group()
    finally:
        distributed.destroy_process_group()


def _read_place() -> tuple[int, int, str, int]:
    """Rank, number of ranks, host and port, as the variables say."""
    missing = [name for name in ADDRESS if not os.environ.get(name)]
    if missing:
        raise TeamError(f"RANK and WORLD_SIZE are set, but not {' and '.join(missing)}: start the ranks by torchrun")
    for name in (*SIZE, "MASTER_PORT"):
        if not os.environ[name].isdecimal():
            raise TeamError(f"the environment variable {name} must be a whole number, got {os.environ[name]!r}")
    rank, world_size, port = (int(os.environ[name]) for name in (*SIZE, "MASTER_PORT"))
    if rank >= world_size:
        raise TeamError(f"RANK is {rank}; it must be below WORLD_SIZE, which is {world_size}")
    return rank, world_size, os.environ["MASTER_ADDR"], port


def _meet(rank: int, world_size: int, host: str, port: int, seconds: float) -> None:
    """Make the group of all ranks, when all are there."""
    backend = "gloo"
    if torch.cuda.is_available():
        backend = "cpu:gloo,cuda:nccl"
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())
    # Who dies is noticed at once. Who is slow, as with a large share of the features, may take its time.
    patience = timedelta(days=7)
    try:
        if rank:  # Asked first, because torch fills the screen when nobody answers.
            _knock(host, port, seconds)
        store = next(rendezvous("env://", timeout=timedelta(seconds=seconds)))[0]
        own = _agree(store, rank, world_size, seconds)
        distributed.init_process_group(backend, store=own, rank=rank, world_size=world_size, timeout=patience)
    except (OSError, RuntimeError) as error:
        raise TeamError(
            f"rank {rank} of {world_size} waited {seconds:g} seconds at {host}:{port} for the others, in vain "
            f"({_shorten(error)}): start all ranks at about the same time, with the address of rank 0's machine"
        ) from error


def _agree(store: Store, rank: int, world_size: int, seconds: float) -> Store:
    """A part of the store for these processes alone: those that died may have left addresses in it.

    Each rank leaves a word that is new; rank 0 answers it with the name of the part.
    """
    word, patience, end = uuid.uuid4().hex, timedelta(seconds=seconds), time.monotonic() + seconds
    store.set(f"quadmatch {rank}", word)
    name = word
    if rank:
        store.wait([word], patience)
        name = store.get(word).decode()
    part, everyone = PrefixStore(name, store), [str(one) for one in range(world_size)]
    part.set(str(rank), "is here")
    while rank == 0 and not part.check(everyone) and time.monotonic() < end:
        for key in (f"quadmatch {one}" for one in range(1, world_size)):
            if store.check([key]):
                store.set(store.get(key).decode(), name)
        time.sleep(0.02)
    part.wait(everyone, patience if rank else timedelta(seconds=0.1))
    return part


def _knock(host: str, port: int, seconds: float) -> None:
    """Return when somebody answers; the error of the last attempt if nobody does for so long."""
    end = time.monotonic() + seconds
    while True:
        try:
            return socket.create_connection((host, port), timeout=max(0.1, end - time.monotonic())).close()
        except OSError:
            if time.monotonic() > end:
                raise
        time.sleep(0.1)


def _shorten(error: Exception) -> str:
    """What torch says first, without the place in its sources."""
    return re.sub(r"^\[\S+\] ", "", str(error).splitlines()[0]).split(". ")[0]


def _end_with(parent: int) -> None:
    """End this process when the one is gone that started it and would start it again; files stay whole."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
