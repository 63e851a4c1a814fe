"""Checkpoints of a run: tensors as safetensors, the rest and their checksums as JSON; a kill loses none.

A checkpoint is a folder named by its step. It is written under another name and renamed when it is whole;
only then is an older one renamed and removed. The last one and the best one stay.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from quadmatch.files import fill_folder, remove_folder, remove_partial, write_file
from quadmatch.models.records import Kinds, check_kinds, hash_content, read_record, read_tensors

FOLDER = "checkpoints"
STATE = "state.json"
FORMAT = 1
PARTS = ("model", "average", "optimiser")
KINDS: Kinds = {"step": int, "best": (dict, type(None)), "stale": int, "seconds": (int, float), "finished": bool}
"""What the state of a checkpoint must say, besides what is only for readers."""


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
    final = folder / f"{checkpoint.step:08d}"
    checksums = {}
    with fill_folder(final) as temporary:
        for part, tensors in ((part, getattr(checkpoint, part)) for part in PARTS):
            content = save({name: one.detach().cpu().contiguous() for name, one in tensors.items()})
            checksums[part] = hash_content(content)
            write_file(temporary / f"{part}.safetensors", content)
        state = {"format": FORMAT, "step": checkpoint.step, **checkpoint.state, "sha256": checksums}
        write_file(temporary / STATE, json.dumps(state, indent=2, default=str).encode())
    _remove_others(folder, {checkpoint.step, *keep})
    return final


def _remove_others(folder: Path, wanted: set[int]) -> None:
    """Remove checkpoints of other steps, and what a killed process left half written or half removed."""
    for entry in list(folder.iterdir()):
        if entry.name.isdecimal() and int(entry.name) not in wanted:
            remove_folder(entry)
    remove_partial(folder, age=-1.0)


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
    step = steps[-1] if step is None else step
    path = run / FOLDER / f"{step:08d}" / STATE
    state = read_record(path, FORMAT, KINDS)
    if state["step"] != step:
        raise ValueError(f"{path}: the key 'step' is {state['step']}, but its folder's name says {step}")
    if state["best"] is not None:
        check_kinds(state["best"], {"step": int, "accuracy": (int, float)}, f"{path}: best")
    if "sha256" in state:
        check_kinds(state, {"sha256": dict}, str(path))
        check_kinds(state["sha256"], dict.fromkeys(PARTS, str), f"{path}: sha256")
    return state


def load_checkpoint(run: Path, step: int | None = None) -> Checkpoint:
    """A checkpoint of a run folder, the last one if no step is given."""
    state = read_state(run, step)
    return Checkpoint(state["step"], state=state, **{part: _read_part(run, state, part) for part in PARTS})


def load_parameters(run: Path, which: str = "best") -> dict[str, Tensor]:
    """Tensors of the model to use: of the "best" or the "last" checkpoint, averaged if the run averages."""
    if which not in ("best", "last"):
        raise ValueError(f"which must be 'best' or 'last', got {which!r}")
    state = read_state(run)
    if which == "best" and state["best"] is not None:
        state = read_state(run, state["best"]["step"])
    return {**_read_part(run, state, "model"), **_read_part(run, state, "average")}


def _read_part(run: Path, state: Mapping[str, Any], part: str) -> dict[str, Tensor]:
    """One tensor file of a checkpoint, checked against the checksum in the checkpoint's state."""
    folder = run / FOLDER / f"{state['step']:08d}"
    if "sha256" not in state:
        warnings.warn(f"{folder} is of an earlier version, without checksums: not checked", stacklevel=2)
    earlier = [step for step in list_checkpoints(run) if step < state["step"]]
    advice = "put back a copy of it, or train anew"
    if earlier:
        advice = f"remove {folder}, and the run can be resumed from step {earlier[-1]}"
    return read_tensors(folder / f"{part}.safetensors", state.get("sha256", {}).get(part), advice)


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
