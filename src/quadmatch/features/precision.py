"""Number format, form and threads of the convolutions, chosen by measuring.

bfloat16 makes some processors three times faster and others eight times slower, and nothing that a processor
says about itself tells which; a few hundred milliseconds of convolutions do. The same holds for bytes, and for the
form: direct, with either order in memory, or by Winograd's tiles.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Literal, TypeVar, cast, get_args

import torch
from torch import Tensor, nn

from quadmatch.features.forms import replace_convolutions
from quadmatch.features.int8 import ByteConvolution, can_multiply_bytes
from quadmatch.features.threads import THREADS
from quadmatch.features.weights import cache_folder
from quadmatch.features.winograd import TiledConvolution
from quadmatch.files import write_json
from quadmatch.machine import name_processor

NumberFormat = Literal["float32", "bfloat16", "int8"]
MemoryFormat = Literal["contiguous", "channels_last", "winograd"]
M = TypeVar("M", bound=nn.Module)

VARIABLE = "QUADMATCH_PRECISION"
CACHED_NAME = "precision-3.json"
"""Its number rises with new candidates: a choice among fewer is not taken over."""
WORTHWHILE = {"bfloat16": 1.3, "int8": 1.5}
"""They have errors of some 10⁻³ and 10⁻², so they must be this much faster to be chosen."""


@dataclass(frozen=True)
class Precision:
    """How convolutions are computed; written as in `bfloat16,channels_last,2`."""

    number: NumberFormat = "float32"
    """In what convolutions are computed; `int8` where nothing is trained, and float32 elsewhere."""
    memory: MemoryFormat = "channels_last"
    """How they are laid out; `winograd` is channels last too, and computed by tiles where nothing is trained."""
    threads: int = 1
    origin: str = "given"
    """Why this one: who gave it, or what was measured."""

    def __str__(self) -> str:
        return f"{self.number},{self.memory},{self.threads}"

    def describe(self) -> str:
        """One line for the user."""
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return f"convolutions in {self.number}, {self.memory}, {threads} ({self.origin})"

    def prepare(self, module: M) -> M:
        """Lay out a module's weights in the memory format, in place."""
        return module.to(memory_format=self._layout())  # type: ignore[call-overload, no-any-return]

    def freeze(self, module: M) -> M:
        """As `prepare`, for a module that is never trained, which may be computed otherwise."""
        prepared = self.prepare(module.requires_grad_(False).eval())
        if self.number == "int8":
            return replace_convolutions(prepared, ByteConvolution)
        return replace_convolutions(prepared, TiledConvolution) if self.memory == "winograd" else prepared

    def arrange(self, images: Tensor) -> Tensor:
        """Lay out a batch of images in the memory format."""
        return images.contiguous(memory_format=self._layout())

    @contextlib.contextmanager
    def running(self, device: str = "cpu") -> Iterator[None]:
        """Within: these threads and this number format; afterwards as before."""
        with THREADS.use(self.threads), self.casting(device):
            yield

    def casting(self, device: str = "cpu") -> torch.autocast:
        """Within: this number format."""
        return torch.autocast(device, torch.bfloat16, enabled=self.number == "bfloat16")

    def _layout(self) -> torch.memory_format:
        return torch.contiguous_format if self.memory == "contiguous" else torch.channels_last


def parse_precision(text: str, *, origin: str = "given") -> Precision:
    """`bfloat16`, `float32,contiguous` or `float32,channels_last,2`: what is left out is usual."""
    number, memory, threads = "float32", "channels_last", torch.get_num_threads()
    for word in text.replace(" ", "").split(","):
        if word in get_args(NumberFormat):
            number = word
        elif word in get_args(MemoryFormat):
            memory = word
        elif word.isdecimal() and int(word) > 0:
            threads = int(word)
        else:
            allowed = ", ".join((*get_args(NumberFormat), *get_args(MemoryFormat)))
            raise ValueError(f"precision {text!r}: {word!r} is neither one of {allowed} nor a number of threads")
    if number != "float32" and memory == "winograd":
        raise ValueError(f"precision {text!r}: winograd is for float32; {number} would lose too many digits in it")
    return Precision(cast(NumberFormat, number), cast(MemoryFormat, memory), threads, origin)


def choose_precision(
    wanted: str | Precision | None = None, *, measure: Callable[[Precision, float], float] | None = None
) -> Precision:
    """`wanted`, else `$QUADMATCH_PRECISION`, else what was measured on this machine before, else now."""
    if isinstance(wanted, Precision):
        return wanted
    for text, origin in ((wanted, "given"), (os.environ.get(VARIABLE), f"from ${VARIABLE}")):
        if text and text != "auto":
            return parse_precision(text, origin=origin)
    path, machine = cache_folder() / CACHED_NAME, name_machine()
    known = _read(path)
    entry, busy = known.get(machine), _is_busy()
    # A damaged entry is measured again, and so is one from busier times.
    with contextlib.suppress(KeyError, ValueError):
        if isinstance(entry, dict) and (busy or not entry.get("busy")):
            return replace(parse_precision(str(entry["choice"])), origin=f"measured earlier: {entry['measured']}")
    choice = _compare(measure or measure_seconds)
    found = {"choice": str(choice), "measured": choice.origin, "busy": busy}
    with contextlib.suppress(OSError):  # Where nothing can be kept, the next start measures again.
        write_json(path, {**known, machine: found}, make_folder=True)
    meanwhile = ", while other programs were running" if busy else ""
    return replace(choice, origin=f"measured{meanwhile}: {choice.origin}")


def _compare(measure: Callable[[Precision, float], float]) -> Precision:
    """The fastest: first the formats on one thread, where other programs disturb least, then more threads."""
    plain = Precision("float32", "contiguous", 1)
    coarser = [Precision("bfloat16", "channels_last", 1)]
    coarser += [Precision("int8", "channels_last", 1)] if can_multiply_bytes() else []
    seconds = {plain: measure(plain, float("inf"))}

    def attempt(candidate: Precision) -> float:
        seconds[candidate] = measure(candidate, 3 * min(seconds.values()))
        return seconds[candidate]

    attempt(Precision("float32", "channels_last", 1))
    attempt(Precision("float32", "winograd", 1))
    best = min(seconds, key=seconds.__getitem__)
    for candidate in coarser:
        if attempt(candidate) * WORTHWHILE[candidate.number] < seconds[best]:
            best = candidate
    while best.threads < torch.get_num_threads():
        more = replace(best, threads=min(2 * best.threads, torch.get_num_threads()))
        if attempt(more) >= seconds[best]:
            break
        best = more
    speeds = ", ".join(f"{one} {seconds[plain] / seconds[one]:.2f}×" for one in seconds)
    return replace(best, origin=speeds)


def measure_seconds(candidate: Precision, patience: float) -> float:
    """Seconds for a small block of VGG, the best of five runs, or of two if they exceed `patience`."""
    generator = torch.Generator().manual_seed(0)
    block = nn.Sequential(nn.Conv2d(128, 128, 3, padding=1), nn.ReLU(), nn.Conv2d(128, 128, 3, padding=1))
    images = torch.randn(2, 128, 32, 32, generator=generator)
    times: list[float] = []
    with torch.inference_mode(), candidate.running():
        block, images = candidate.freeze(block), candidate.arrange(images)
        while len(times) < 5:
            start = perf_counter()
            block(images)
            times.append(perf_counter() - start)
            # The first run also sets up kernels, so that only the second can rule a candidate out.
            if len(times) == 2 and times[-1] > patience:
                break
    return min(times)


def name_machine() -> str:
    """What a choice depends on: the processor's model, the threads at hand, and the version of torch."""
    threads, cores = torch.get_num_threads(), os.cpu_count()
    return f"{name_processor()}; {cores} cores; {threads} threads; torch {torch.__version__}"


def _is_busy() -> bool:
    """Whether other programs hold so many cores that the best number of threads now is not the best later."""
    try:
        return os.getloadavg()[0] > max(1.0, (os.cpu_count() or 1) / 2)
    except (OSError, AttributeError):  # A system without load averages.
        return False


def _read(path: Path) -> dict[str, object]:
    try:
        known = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
