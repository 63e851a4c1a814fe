"""Checkpoints of a run: tensors as safetensors, the rest as JSON; a kill at any moment loses none.

A checkpoint is a folder named by its step. It is written under another name and renamed when it is whole;
only then is an older one renamed and removed. The last one and the best one stay.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

FOLDER = "checkpoints"
STATE = "state.json"
PARTIAL = ".partial-"
FORMAT = 1
PARTS = ("model", "average", "optimiser")


@dataclass(frozen=True)
class Checkpoint:
    """Everything that training needs to go on as if it had never stopped."""

    step: int
    """Steps that are done."""
    model: Mapping[str, Tensor]
    average: Mapping[str, Tensor]
    """Moving average of the parameters; empty if there is none."""
    optimiser: Mapping[str, Tensor]
    state: Mapping[str, Any]
    """Readable: the experiment, the best result so far, number format, versions."""


def save_checkpoint(run: Path, checkpoint: Checkpoint, keep: Iterable[int] = ()) -> Path:
    """Write a checkpoint into a run folder, then remove all others but those of the steps in `keep`."""
    from safetensors.torch import save

    folder = run / FOLDER
    temporary = folder / f"{PARTIAL}{uuid.uuid4().hex}"
    temporary.mkdir(parents=True)
    for part in PARTS:
        tensors = {name: one.detach().cpu().contiguous() for name, one in getattr(checkpoint, part).items()}
        _write(temporary / f"{part}.safetensors", save(tensors))
    state = {"format": FORMAT, "step": checkpoint.step, **checkpoint.state}
    _write(temporary / STATE, json.dumps(state, indent=2, default=str).encode())
    final = folder / f"{checkpoint.step:08d}"
    os.replace(temporary, final)
    _settle(folder)
    _remove_others(folder, {checkpoint.step, *keep})
    return final


def _remove_others(folder: Path, wanted: set[int]) -> None:
    """Remove checkpoints of other steps, and what a killed process left half written or half removed."""
    for entry in folder.iterdir():
        if entry.name.isdecimal() and int(entry.name) not in wanted:
            entry = entry.rename(folder / f"{PARTIAL}{uuid.uuid4().hex}")
        if entry.name.startswith(PARTIAL):
            shutil.rmtree(entry)


def list_checkpoints(run: Path) -> list[int]:
    """Steps of the complete checkpoints in a run folder, rising."""
    folder = run / FOLDER
    entries = folder.iterdir() if folder.is_dir() else ()
    return sorted(int(one.name) for one in entries if one.name.isdecimal() and (one / STATE).is_file())


def read_state(run: Path, step: int | None = None) -> dict[str, Any]:
    """The readable part of a checkpoint, the last one if no step is given."""
    steps = list_checkpoints(run)
    if not steps:
        raise FileNotFoundError(f"{run} holds no checkpoint")
    if step is not None and step not in steps:
        raise FileNotFoundError(f"{run} holds no checkpoint of step {step}; it holds {steps}")
    path = run / FOLDER / f"{steps[-1] if step is None else step:08d}" / STATE
    try:
        state: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    if state.get("format") != FORMAT:
        raise ValueError(f"{path} has the format {state.get('format')!r}; this version reads {FORMAT}")
    return state


def load_checkpoint(run: Path, step: int | None = None) -> Checkpoint:
    """A checkpoint of a run folder, the last one if no step is given."""
    state = read_state(run, step)
    folder = run / FOLDER / f"{state['step']:08d}"
    parts = {part: read_tensors(folder / f"{part}.safetensors") for part in PARTS}
    return Checkpoint(state["step"], state=state, **parts)


def load_parameters(run: Path, which: str = "best") -> dict[str, Tensor]:
    """Tensors of the model to use: of the "best" or the "last" checkpoint, averaged if the run averages."""
    if which not in ("best", "last"):
        raise ValueError(f"which must be 'best' or 'last', got {which!r}")
    best = read_state(run).get("best") or {}
    checkpoint = load_checkpoint(run, best.get("step") if which == "best" else None)
    return {**checkpoint.model, **checkpoint.average}


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file; one that cannot be read is named."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        return load(path.read_bytes())
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged: {error}") from error


@torch.no_grad()
def load_into(model: nn.Module, tensors: Mapping[str, Tensor], origin: str) -> None:
    """Copy tensors into a model, in its own layout; keys and shapes that do not fit are named."""
    own = model.state_dict()
    problems = [f"{name} is unknown" for name in tensors if name not in own]
    problems += [f"{name} is missing" for name in own if name not in tensors]
    for name in own.keys() & tensors.keys():
        found, needed = tuple(tensors[name].shape), tuple(own[name].shape)
        if found != needed:
            problems.append(f"{name} has the shape {found} and needs {needed}")
    if problems:
        raise ValueError(f"{origin} does not fit the model: {'; '.join(sorted(problems))}")
    for name, value in own.items():
        value.copy_(tensors[name])


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _settle(folder: Path) -> None:
    """Make a rename outlive a loss of power, where the system can."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
