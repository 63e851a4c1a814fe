"""The same network in other runtimes, for `bench images --only convolutions`; none is needed for anything else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from quadmatch.features.precision import Precision
from quadmatch.features.vgg import VGG16

Call = Callable[[], object]


def compile_frozen(network: VGG16, image: Tensor) -> Call:
    """torch.compile with the weights as constants; needs a C++ compiler."""
    from torch._inductor import config

    plain = Precision().prepare(nn.Sequential(*network.features))
    laid = Precision().arrange(image)
    with config.patch(freezing=True):
        compiled: Callable[[Tensor], Tensor] = torch.compile(plain)
        compiled(laid)
    return lambda: compiled(laid)


def run_onnx(network: VGG16, image: Tensor) -> Call:
    """ONNX Runtime on one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(write_onnx(network), options, providers=["CPUExecutionProvider"])
    pixels = {"image": image.numpy()}
    return lambda: session.run(None, pixels)


def run_openvino(network: VGG16, image: Tensor) -> Call:
    """OpenVINO on one thread, in float32: by itself it would take bfloat16 where the processor has it."""
    import openvino

    core = openvino.Core()
    plain = core.read_model(write_onnx(network))
    plain.reshape(list(image.shape))
    settings = {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    request = core.compile_model(plain, "CPU", settings).create_infer_request()
    pixels = image.numpy()
    return lambda: request.infer([pixels])


def write_onnx(network: VGG16) -> bytes:
    """The network as an ONNX model: convolutions, ReLU, pooling."""
    from onnx import TensorProto, helper, numpy_helper

    nodes: list[Any] = []
    weights: list[Any] = []
    last = "image"
    for number, module in enumerate(network.features):
        made = f"layer {number}"
        if isinstance(module, nn.Conv2d):
            names = [f"{made} weight", f"{made} bias"]
            weights += [numpy_helper.from_array(one.numpy(), name) for one, name in zip(module.parameters(), names)]
            nodes.append(helper.make_node("Conv", [last, *names], [made], kernel_shape=[3, 3], pads=[1] * 4))
        elif isinstance(module, nn.MaxPool2d):
            nodes.append(helper.make_node("MaxPool", [last], [made], kernel_shape=[2, 2], strides=[2, 2]))
        else:
            nodes.append(helper.make_node("Relu", [last], [made]))
        last = made
    inputs = [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, None, None])]
    outputs = [helper.make_tensor_value_info(last, TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "vgg16", inputs, outputs, weights)
    opset = [helper.make_opsetid("", 17)]
    content: bytes = helper.make_model(graph, opset_imports=opset, ir_version=9).SerializeToString()
    return content
