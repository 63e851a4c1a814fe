"""From the folder of a run to the two files of a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from quadmatch.files import write_file, write_json
from quadmatch.models.load import FORMAT, identify_weights, load
from quadmatch.models.records import hash_content

FIGURES = (
    *("dataset", "split", "protocol", "pairs", "pairs_hash", "seed", "constraint", "partial"),
    *("mean", "mean_common", "date", "hardware", "commit"),
)
"""Of an evaluation's JSON, what goes onto a card."""
ELSEWHERE = {"data": ("root",), "features": ("cache", "weights", "precision"), "training": ("threads", "device")}
"""Keys of an experiment that name places on the machine that trained; a card does not carry them."""


def export_model(
    run: str | Path,
    name: str,
    folder: str | Path,
    *,
    evaluations: Iterable[Mapping[str, Any]] = (),
    number: str = "float16",
) -> Path:
    """Write NAME.safetensors and NAME.json into `folder`, and return the card's path.

    `evaluations` are what `Evaluation.to_json` gave; their means go onto the card.
    """
    from safetensors.torch import save

    from quadmatch.features.extractor import FeatureExtractor
    from quadmatch.models.checkpoints import read_state
    from quadmatch.models.runs import read_run

    if not name or name != Path(name).name or name.startswith("."):
        raise ValueError(f"name must be a plain file name, got {name!r}")
    if number not in ("float16", "float32"):
        raise ValueError(f"number must be 'float16' or 'float32', got {number!r}")
    matcher, record = load(run, precision="float32"), read_run(Path(run))
    progress = read_state(Path(run))
    if not isinstance(matcher.features, FeatureExtractor):
        raise TypeError(f"{run}: the features of the run are no FeatureExtractor")
    tensors = {f"head.{key}": value for key, value in matcher.head.state_dict().items()}
    tensors |= {f"features.{key}": value for key, value in matcher.features.trained_state().items()}
    content = save({key: _shrink(value, number) for key, value in tensors.items()})
    card = {
        "format": FORMAT,
        "name": name,
        "protocol": record.experiment.data.protocol,
        "split": record.experiment.data.split,
        "width": record.experiment.head.options.get("width"),
        **record.origin,
        "trained": {key: progress[key] for key in ("step", "seconds", "best") if key in progress},
        "figures": [{key: one[key] for key in FIGURES if key in one} for one in evaluations],
        "parameters": sum(value.numel() for value in tensors.values()),
        "number": number,
        "bytes": len(content),
        "sha256": hash_content(content),
        "initial_weights": identify_weights(matcher.features.initial),
        "experiment": strip_places(record.experiment.model_dump(mode="json")),
    }
    # The card last: a model without its card is not seen, one with a wrong checksum would be an error.
    write_file(Path(folder) / f"{name}.safetensors", content, make_folder=True)
    return write_json(Path(folder) / f"{name}.json", card)


def strip_places(experiment: dict[str, Any]) -> dict[str, Any]:
    """The experiment without what names places on the machine that trained it."""
    # A run folder by its name alone; a shipped model has no more than that.
    starts = [Path(start).name for start in experiment["training"].get("start") or []]
    experiment = {**experiment, "training": experiment["training"] | {"start": starts}}
    return {
        section: {key: value for key, value in content.items() if key not in ELSEWHERE.get(section, ())}
        for section, content in experiment.items()
        if content is not None  # A table that the experiment does not have.
    }


def _shrink(value: Tensor, number: str) -> Tensor:
    if not value.is_floating_point():
        return value.contiguous()
    kind = torch.float16 if number == "float16" else torch.float32
    small = value.to(kind).contiguous()
    if not torch.isfinite(small).all():
        raise ValueError(f"a weight of {float(value.abs().max()):g} is beyond {number}: export float32")
    return small
