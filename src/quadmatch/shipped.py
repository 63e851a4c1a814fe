"""Models by name: those that ship with the package, and any that `export_model` wrote.

A model is two files: NAME.safetensors with the head and what differs from the ImageNet weights, and
NAME.json, its card: the experiment that it came from, how it was trained, and what it reached.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from quadmatch.matcher import Matcher

MODELS = Path(__file__).resolve().parent / "models"
ALIASES = "aliases.json"
UNTRAINED = "vgg16"
DEFAULT = "default"
TRAINED = "qcdgm-voc"
"""The trained model that the default one is made of."""
DOUBT = 0.4
"""Threshold of its partial matches: about as much precision as recall on warps of the training photographs."""
FORMAT = 1


def list_models() -> list[str]:
    """Names that `load` knows."""
    cards = {path.stem for path in MODELS.glob("*.json") if path.name != ALIASES}
    known = {UNTRAINED, DEFAULT, *cards}
    return sorted(known | {name for name, model in read_aliases().items() if model in known})


def read_aliases() -> dict[str, str]:
    """Other names of shipped models."""
    path = MODELS / ALIASES
    names: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return names


def load(name_or_path: str | os.PathLike[str] = DEFAULT, *, precision: str | None = None) -> Matcher:
    """A shipped model by name, a trained one by its run folder, or an exported one by its file.

    `precision` is the number format of the convolutions, as in `bfloat16,channels_last,2`; else measured.
    """
    if os.fspath(name_or_path) == DEFAULT:
        return build_default(precision)
    if os.fspath(name_or_path) == UNTRAINED:
        return build_untrained(precision)
    place = find_model(name_or_path)
    return load_run(place, precision) if place.is_dir() else load_model(place, precision)


def find_model(name_or_path: str | os.PathLike[str]) -> Path:
    """The run folder, or a file of the model, that is meant; what is neither gets the list of names."""
    from quadmatch.runs import RECORD

    name, path = os.fspath(name_or_path), Path(name_or_path).expanduser()
    if name in list_models():
        return MODELS / f"{read_aliases().get(name, name)}.json"
    if path.is_file() or (path / RECORD).is_file():
        return path
    if not path.is_dir():
        names = ", ".join(list_models())
        raise ValueError(f"{name!r} is neither a model nor a file nor a folder; models are {names}")
    cards = sorted(one for one in path.glob("*.json") if one.with_suffix(".safetensors").is_file())
    if len(cards) == 1:
        return cards[0]
    found = f"{len(cards)} models" if cards else "neither"
    raise ValueError(f"{path} must be the folder of a run or of one exported model; it holds {found}")


def build_untrained(precision: str | None = None) -> Matcher:
    """The ImageNet network's read-outs compared, with the quadratic constraint on the graphs as they are."""
    from quadmatch.features.extractor import build_extractor
    from quadmatch.methods.dot_product import DotProduct

    return Matcher(build_extractor("frozen", precision=precision), DotProduct()).eval()


def build_default(precision: str | None = None) -> Matcher:
    """For pictures of any kind: the best trained model and the untrained one in consensus.

    Where no trained model ships, the untrained one alone.
    """
    from quadmatch.features.extractor import LocalFeatures
    from quadmatch.features.twin import TwinFeatures
    from quadmatch.methods.consensus import Consensus

    if TRAINED not in list_models():
        return build_untrained(precision)
    trained = load(TRAINED, precision=precision)
    assert isinstance(trained.features, LocalFeatures)
    features, head = TwinFeatures(trained.features), Consensus(trained.head)
    return Matcher(features, head, weight=trained.weight, threshold=DOUBT).eval()


def load_run(folder: Path, precision: str | None = None) -> Matcher:
    """What a run trained, with the parameters of its best checkpoint."""
    from quadmatch.checkpoints import load_into, load_parameters
    from quadmatch.experiment import build_matcher
    from quadmatch.runs import read_run

    matcher = build_matcher(read_run(folder).experiment, precision)
    load_into(matcher, load_parameters(folder), str(folder))
    return matcher.eval()


def read_card(path: Path) -> dict[str, Any]:
    """The card of a model, by either of its two files."""
    path = path.with_suffix(".json")
    if not path.is_file():
        raise FileNotFoundError(f"a model needs its card beside it: there is no file {path}")
    try:
        card: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        found = card.get("format")
    except (ValueError, AttributeError) as error:
        raise ValueError(f"{path} is not the card of a model: {error}") from error
    if found != FORMAT:
        raise ValueError(f"{path} has the format {found!r}; this version reads {FORMAT}")
    return card


def load_model(path: Path, precision: str | None = None) -> Matcher:
    """A model by either of its two files; nothing is used before its checksum is right."""
    from safetensors.torch import load

    from quadmatch.checkpoints import load_into
    from quadmatch.experiment import build_matcher, check_experiment
    from quadmatch.features.extractor import FeatureExtractor

    card, file = read_card(path), path.with_suffix(".safetensors")
    content = file.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != card["sha256"]:
        raise ValueError(f"{file} is damaged: its SHA-256 is {found}, its card says {card['sha256']}")
    matcher = build_matcher(check_experiment(card["experiment"], str(path)), precision or "auto")
    tensors = {key: value.float() for key, value in load(content).items()}
    assert isinstance(matcher.features, FeatureExtractor)
    if card["initial_weights"] != identify_weights(matcher.features.initial):
        warnings.warn(
            f"{path.stem} was trained from other initial weights than those at hand; expect lower accuracy",
            stacklevel=2,
        )
    matcher.features.load_trained(_take(tensors, "features."))
    load_into(matcher.head, _take(tensors, "head."), str(file))
    return matcher.eval()


def find_experiment(name_or_path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Tables of the experiment that a model came from; None for the untrained and for the default one."""
    from quadmatch.runs import read_run

    if os.fspath(name_or_path) in (UNTRAINED, DEFAULT):
        return None
    place = find_model(name_or_path)
    if place.is_dir():
        return read_run(place).experiment.model_dump(mode="json")
    experiment: dict[str, Any] = read_card(place)["experiment"]
    return experiment


def _take(tensors: Mapping[str, Tensor], start: str) -> dict[str, Tensor]:
    return {key.removeprefix(start): value for key, value in tensors.items() if key.startswith(start)}


def identify_weights(state: Mapping[str, Tensor]) -> str:
    """A name for a network's weights, from its biases alone, which are quick to hash."""
    from quadmatch.features.weight_files import hash_state

    return hash_state({key: value for key, value in state.items() if key.endswith(".bias")})[:16]
