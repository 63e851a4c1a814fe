"""Forms of VGG16's convolutions on one thread, beside each other and beside what the processor can do at most."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec

import torch
from torch import Tensor, nn

from quadmatch.bench.measurement import Row, one_thread, time_once
from quadmatch.bench.peer_runtimes import compile_frozen, run_onnx, run_openvino
from quadmatch.features.int8 import can_multiply_bytes
from quadmatch.features.precision import Precision, parse_precision
from quadmatch.features.vgg import VGG16, Layer

LAST: Layer = "relu5_1"
SIZE, ROUNDS, PRODUCT = 256, 5, 2048
"""Pixels of a picture's side, calls of each form, and rows of the matrices of the roofline."""
OURS = ("float32,contiguous,1", "float32,channels_last,1", "float32,winograd,1", "bfloat16,1", "int8,1")
PEERS = {"torch.compile, frozen": compile_frozen, "ONNX Runtime": run_onnx, "OpenVINO": run_openvino}
NEEDED = {"ONNX Runtime": ("onnx", "onnxruntime"), "OpenVINO": ("onnx", "openvino")}
REQUIRED = 2.0
"""Times today's images a second, float32 channels last, that a form without bfloat16 should reach."""

Call = Callable[[], object]


def run(size: int = SIZE, rounds: int = ROUNDS, product: int = PRODUCT) -> list[Row]:
    """Images a second of every form that there is on this machine, the rounds interleaved."""
    with one_thread(), torch.inference_mode():
        network, image = make_network(), torch.rand(1, 3, size, size)
        calls = dict(list_forms(network, image))
        products = dict(list_products(product))
        seconds = {name: float("inf") for name in calls | products}
        for _ in range(rounds):
            for name, call in (calls | products).items():
                seconds[name] = min(seconds[name], time_once(call))
    rates = {name: 2 * product**3 / seconds[name] / 1e9 for name in products}
    work = count_operations(network, size) / 1e9
    return [describe_form(name, seconds, work, rates, size) for name in calls]


def describe_form(name: str, seconds: dict[str, float], work: float, rates: dict[str, float], size: int) -> Row:
    """A row; `work` are billions of operations of a direct convolution, which Winograd's form does fewer of."""
    own, usual = seconds[name], seconds["float32,channels_last,1"]
    judged = {"required": REQUIRED, "met": usual / own >= REQUIRED} if name == "int8,1" else {}
    return {
        "name": f"convolutions, {name}, processor seconds of a picture beside float32,channels_last",
        "size": f"{size} × {size} pixels, VGG16 to {LAST}, one thread",
        "ours": own,
        "peer": usual,
        "ratio": usual / own,
        **judged,
        "pictures_a_second": 1 / own,
        "share_of_float32_product": work / own / rates["float32"],
        "share_of_own_product": work / own / rates[_name_number(name)],
    } | {f"{number}_product_GFLOP_a_second": rate for number, rate in rates.items()}


def _name_number(form: str) -> str:
    """The number format of a form; peers are measured in float32."""
    number = form.partition(",")[0]
    return number if number in ("bfloat16", "int8") else "float32"


def make_network() -> VGG16:
    """VGG16 with random weights: time does not depend on them."""
    torch.manual_seed(0)
    return VGG16(LAST).eval().requires_grad_(False)


def list_forms(network: VGG16, image: Tensor) -> Iterator[tuple[str, Call]]:
    """Each form that this machine has, called once: what it sets up at first is not measured."""
    for text in OURS:
        if text != "int8,1" or can_multiply_bytes():
            call = _call_own(parse_precision(text), image)
            call()
            yield text, call
    for name, make in PEERS.items():
        if all(find_spec(one) for one in NEEDED.get(name, ())):
            try:
                call = make(network, image)
                call()
            except Exception as error:  # A peer that does not run here, for want of a compiler say, has no row.
                print(f"{name}: left out, {type(error).__name__}: {str(error).splitlines()[0][:100]}")
            else:
                yield name, call


def _call_own(precision: Precision, image: Tensor) -> Call:
    own, laid = precision.freeze(make_network()), precision.arrange(image)

    def call() -> object:
        with precision.running():
            return own(laid, [LAST])

    return call


def list_products(size: int) -> Iterator[tuple[str, Call]]:
    """A matrix product in each number format: the most that convolutions without tricks can reach."""
    for number in (torch.float32, torch.bfloat16):
        matrix = torch.rand(size, size).to(number)
        yield str(number).removeprefix("torch."), lambda matrix=matrix: matrix @ matrix  # type: ignore[misc]
    if can_multiply_bytes():
        yield "int8", _multiply_bytes(size)


def _multiply_bytes(size: int) -> Call:
    """A product of bytes that are not negative with bytes that have a sign, as in the convolutions of bytes."""
    scales, zeros = torch.ones(size), torch.zeros(size, dtype=torch.int64)
    bytes_, signed = (torch.randint(0, 127, (size, size), dtype=kind) for kind in (torch.uint8, torch.int8))
    packed = torch.ops.onednn.qlinear_prepack(signed, [size, size])
    given = bytes_, 1.0, 0, packed, scales, zeros, None
    return lambda: torch.ops.onednn.qlinear_pointwise(*given, 1.0, 0, torch.float32, "none", [], "")


def count_operations(network: VGG16, size: int) -> int:
    """Multiplications and additions of direct convolutions."""
    total = 0
    for module in network.features:
        if isinstance(module, nn.Conv2d):
            total += 2 * module.weight.numel() * size * size
        elif isinstance(module, nn.MaxPool2d):
            size //= 2
    return total
