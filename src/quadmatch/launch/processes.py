"""Several processes of one program on this machine, started and watched as torchrun does."""

from __future__ import annotations

import logging
import os
import sys
import uuid
from collections.abc import Sequence

from quadmatch.machine import count_cores
from quadmatch.training.team import TeamError


def start_processes(count: int, module: str, words: Sequence[str]) -> None:
    """Run `python -m MODULE WORDS` as so many ranks, which share the cores; if one fails, all end.

    Each has `OMP_NUM_THREADS` threads if that is set, else its share of the cores.
    """
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, count_cores() // count)))
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)  # The ranks say what is wrong.
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=count,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        run_id=uuid.uuid4().hex,
        max_restarts=0,
        local_addr="localhost",
    )
    try:
        elastic_launch(config, sys.executable)("-m", module, *words)
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        raise TeamError(f"rank {rank} of {count} ended with exit code {failure.exitcode}, and all with it") from None
    except SignalException as error:
        raise TeamError(f"stopped by signal {error.sigval.name}, with all {count} processes") from None
