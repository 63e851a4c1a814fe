"""Options that say who does the work: this process, or the workers of a Ray cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from quadmatch.launch.cluster import Cluster

Engine = Annotated[
    Literal["local", "ray"], typer.Option(help="One process here, or workers on Ray: of this machine or of a cluster.")
]
Address = Annotated[
    str | None,
    typer.Option(help="Ray cluster: auto or host:port; else Ray is started here and ended.", show_default=False),
]
Workers = Annotated[
    int | None,
    typer.Option(min=1, help="Processes on Ray; each has the threads of one local process.", show_default="all fit"),
]


def choose_cluster(engine: str, address: str | None, workers: int | None) -> Cluster | None:
    """The cluster that the options name; None for the engine `local`."""
    if engine == "local":
        if address is not None or workers is not None:
            raise ValueError("--address and --workers belong to --engine ray")
        return None
    from quadmatch.launch.cluster import Cluster, load_ray

    load_ray()
    return Cluster(address, workers)
