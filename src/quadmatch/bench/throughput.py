"""How fast a level runs, and how much of its time is convolution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from quadmatch.features.extractor import FeatureExtractor
from quadmatch.features.trunk import join_entries

PRODUCTS = ("aten.mm", "aten.addmm", "aten.bmm")
"""Matrix products, as which level `local` computes its convolutions."""


class OperationTimer(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up the processor seconds of each operation that runs within, forward and backward."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seconds: dict[str, float] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run and time one operation."""
        start = process_time()
        result = func(*args, **(kwargs or {}))
        name = str(func.overloadpacket)
        self.seconds[name] = self.seconds.get(name, 0.0) + process_time() - start
        return result


@dataclass(frozen=True)
class Throughput:
    """Images a second, and the share of the processor's time that convolutions take, from 0 to 1."""

    images_per_second: float
    convolution_share: float

    def __str__(self) -> str:
        return f"{self.images_per_second:.1f} images/s, {self.convolution_share:.0%} of it convolution"


def measure_step(step: Callable[[], object], images: int, *, repeats: int = 3, products: bool = False) -> Throughput:
    """Throughput of `step`, which handles `images`; `products` counts matrix products as convolutions."""
    step()  # Kernels are set up and memory is allocated in the first run.
    seconds = []
    for _ in range(repeats):
        start = perf_counter()
        step()
        seconds.append(perf_counter() - start)
    with OperationTimer():  # Its own first use loads modules.
        torch.zeros(1).add(1)
    timer = OperationTimer()
    start = process_time()
    with timer:
        step()
    total = process_time() - start
    counted = (*PRODUCTS, "aten.conv") if products else ("aten.conv",)
    convolution = sum(spent for name, spent in timer.seconds.items() if name.startswith(counted))
    return Throughput(images / min(seconds), convolution / total if total else 0.0)


def measure_extractor(
    extractor: FeatureExtractor, *, images: int = 8, keypoints: int = 10, repeats: int = 3
) -> dict[str, Throughput]:
    """Throughput of the two parts: `extract`, once an image, and `train`, the rest forward and backward."""
    generator = torch.Generator().manual_seed(0)
    shape = (images, extractor.size, extractor.size, 3)
    pixels = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
    points = list(torch.rand(images, keypoints, 2, generator=generator) * extractor.size)
    arrays, counts = join_entries(extractor.extract(pixels, points), extractor.single, torch.device("cpu"))
    measured = {"extract": measure_step(lambda: extractor.extract(pixels, points), images, repeats=repeats)}

    def train() -> None:
        features = extractor(arrays, counts)
        if features.local.requires_grad:
            (features.local.sum() + features.edge.sum()).backward()

    measured["train"] = measure_step(train, images, repeats=repeats, products=extractor.level == "local")
    extractor.zero_grad(set_to_none=True)
    return measured
