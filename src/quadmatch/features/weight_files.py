"""Reading network weights from files, without executing anything that is in them."""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

CONVOLUTIONS = (0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28)
"""Positions of VGG16's thirteen convolutions in torchvision's `features`."""
WIDTHS = (3, 64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512)


class ArrayUnpickler(pickle.Unpickler):
    """Builds dictionaries, numbers, strings and numpy arrays; refuses every other class and function."""

    # Asked of numpy itself, because the module that holds the function was renamed in numpy 2.
    ALLOWED = {  # noqa: RUF012
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
        ("numpy.core.multiarray", "_reconstruct"): np.ndarray(0).__reduce__()[0],
        ("numpy._core.multiarray", "_reconstruct"): np.ndarray(0).__reduce__()[0],
    }

    def find_class(self, module: str, name: str) -> Any:
        """The named global, if it is one of the four that an array needs."""
        try:
            return self.ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"refuses {module}.{name}: only numpy arrays are allowed") from None


def read_arrays(content: bytes) -> Any:
    """The nested dictionary of numeric arrays in a pickle; anything else in it is an error."""

    def check(value: Any, place: str) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                check(item, f"{place}.{key}")
        elif not isinstance(value, np.ndarray) or value.dtype.kind not in "fiub":
            raise ValueError(f"{place.lstrip('.') or 'the pickle'} is not a numeric array")

    try:
        found = ArrayUnpickler(io.BytesIO(content)).load()
    except Exception as error:  # Damaged pickles fail in many ways.
        raise ValueError(f"not a pickle of numpy arrays: {error}") from error
    check(found, "")
    return found


def convert_flax(content: Any) -> dict[str, Tensor]:
    """Thirteen flax convolutions (kernels height, width, in, out) under torchvision's names and order."""
    try:
        layers = content["VGG16_0"]
        arrays = [(layers[f"Conv_{i}"]["kernel"], layers[f"Conv_{i}"]["bias"]) for i in range(len(CONVOLUTIONS))]
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a VGG16 checkpoint: {error} is missing") from error
    state = {}
    for position, (kernel, bias) in zip(CONVOLUTIONS, arrays):
        state[f"features.{position}.weight"] = torch.from_numpy(kernel.transpose(3, 2, 0, 1).copy())
        state[f"features.{position}.bias"] = torch.from_numpy(bias.copy())
    return state


def select_features(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The convolutional part of torchvision's VGG16 or VGG16-BN state, checked to be whole."""
    found = {key: value for key, value in state.items() if key.startswith("features.")}
    kernels = [key for key in found if key.endswith(".weight") and found[key].ndim == 4]
    positions = sorted(int(key.split(".")[1]) for key in kernels)
    if len(positions) != len(CONVOLUTIONS):
        raise ValueError(f"VGG16 has 13 convolutions named features.N.weight; found {len(positions)}")
    normalised = positions != list(CONVOLUTIONS)
    for position, inputs, outputs in zip(positions, WIDTHS, WIDTHS[1:]):
        expected = {f"features.{position}.weight": (outputs, inputs, 3, 3), f"features.{position}.bias": (outputs,)}
        if normalised:
            names = ("weight", "bias", "running_mean", "running_var")
            expected |= {f"features.{position + 1}.{name}": (outputs,) for name in names}
            # Files from before torch 0.4.1 do not count batches.
            found.setdefault(f"features.{position + 1}.num_batches_tracked", torch.zeros((), dtype=torch.long))
        for key, shape in expected.items():
            if key not in found:
                raise ValueError(f"{key} is missing")
            if tuple(found[key].shape) != shape:
                raise ValueError(f"{key} has shape {tuple(found[key].shape)}; VGG16 needs {shape}")
    return {key: value.float() if value.is_floating_point() else value for key, value in found.items()}


def read_weights(path: Path) -> dict[str, Tensor]:
    """VGG16 or VGG16-BN from a .safetensors or .pth with torchvision's names, or from a flax .ckpt."""
    if not path.is_file():
        raise FileNotFoundError(f"no weights file {path}")
    readers: dict[str, Callable[[], dict[str, Tensor]]] = {
        ".safetensors": lambda: load_file(path),
        ".pth": lambda: torch.load(path, map_location="cpu", weights_only=True),
        ".pt": lambda: torch.load(path, map_location="cpu", weights_only=True),
        ".ckpt": lambda: convert_flax(read_arrays(path.read_bytes())),
    }
    if path.suffix not in readers:
        raise ValueError(f"{path}: a weights file ends in {', '.join(readers)}")
    try:
        return select_features(readers[path.suffix]())
    except Exception as error:  # Damaged files fail in many ways.
        raise ValueError(f"{path}: {error}") from error


def has_batch_norm(state: dict[str, Tensor]) -> bool:
    """Whether these are VGG16-BN's weights."""
    return any(key.endswith(".running_mean") for key in state)


def fold_batch_norm(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """VGG16-BN in evaluation mode as a plain VGG16: each normalisation joins its convolution."""
    if not has_batch_norm(state):
        return state
    positions = sorted(int(key.split(".")[1]) for key, value in state.items() if value.ndim == 4)
    folded = {}
    for plain, position in zip(CONVOLUTIONS, positions):
        kernel, bias = state[f"features.{position}.weight"], state[f"features.{position}.bias"]
        scale, shift, mean, variance = (
            state[f"features.{position + 1}.{name}"] for name in ("weight", "bias", "running_mean", "running_var")
        )
        factor = scale / (variance + 1e-5).sqrt()
        folded[f"features.{plain}.weight"] = kernel * factor[:, None, None, None]
        folded[f"features.{plain}.bias"] = (bias - mean) * factor + shift
    return folded


def hash_state(state: dict[str, Tensor]) -> str:
    """SHA-256 over names, types, shapes and values, in the order of the names."""
    digest = hashlib.sha256()
    for key in sorted(state):
        value = state[key].detach().cpu().contiguous()
        digest.update(f"{key} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
