"""Models by name: those that ship with the package, and any that `export_model` wrote.

A model is two files: NAME.safetensors with the head and what differs from the ImageNet weights, and
NAME.json, its card: the experiment that it came from, how it was trained, and what it reached.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quadmatch.models.records import read_record, read_tensors

if TYPE_CHECKING:  # Whoever only asks for names, or misspells one, does not wait for torch.
    from torch import Tensor

    from quadmatch.matcher import Matcher

MODELS = Path(__file__).resolve().parent
ALIASES = "aliases.json"
UNTRAINED = "vgg16"
DEFAULT = "default"
TRAINED = "qcattention-voc"
"""The trained model that the default one is made of."""
DOUBT = 0.4
"""Threshold of its partial matches: about as much precision as recall on warps of the training photographs."""
FORMAT = 1


def list_models() -> list[str]:
    """Names that `load` knows."""
    cards = {path.stem for path in MODELS.glob("*.json") if path.name != ALIASES}
    known = {UNTRAINED, DEFAULT, *cards}
    return sorted(known | {name for name, model in read_aliases().items() if model in known})


def describe_models() -> dict[str, str]:
    """What each of them is, in one line."""
    known = {
        DEFAULT: "pictures of any kind: a trained model and the untrained one together",
        UNTRAINED: "two pictures of the same thing: features of the ImageNet network, nothing trained for matching",
    }
    return {name: known.get(name) or _describe_card(name) for name in list_models()}


def _describe_card(name: str) -> str:
    card = read_card(MODELS / f"{read_aliases().get(name, name)}.json")
    experiment, same = card["experiment"], f"another name of {card['name']}: " if name != card["name"] else ""
    best = (card.get("trained", {}).get("best") or {}).get("accuracy")
    figure = "" if best is None else f", {best:.1f} % right on its validation split"
    return f"{same}objects of one class, {experiment['head']['method']} trained on {experiment['data']['name']}{figure}"


def read_aliases() -> dict[str, str]:
    """Other names of shipped models."""
    path = MODELS / ALIASES
    names: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return names


def load(name_or_path: str | os.PathLike[str] = DEFAULT, *, precision: str | None = None) -> Matcher:
    """A shipped model by name, a trained one by its run folder, or an exported one by its file.

    `precision` is the number format of the convolutions, as in `bfloat16,channels_last,2`; without it the
    fastest is measured.
    """
    if os.fspath(name_or_path) == DEFAULT:
        return build_default(precision)
    if os.fspath(name_or_path) == UNTRAINED:
        return build_untrained(precision)
    place = find_model(name_or_path)
    return load_run(place, precision) if place.is_dir() else load_model(place, precision)


def find_model(name_or_path: str | os.PathLike[str]) -> Path:
    """The run folder, or a file of the model, that is meant; what is neither gets the list of names."""
    name, path = os.fspath(name_or_path), Path(os.path.expanduser(name_or_path))
    if name in list_models():
        return MODELS / f"{read_aliases().get(name, name)}.json"
    if path.is_file():
        return path
    if not path.is_dir():
        names = ", ".join(list_models())
        raise ValueError(f"{name!r} is neither a model nor a file nor a folder; models are {names}")
    from quadmatch.models.runs import RECORD

    if (path / RECORD).is_file():
        return path
    cards = sorted(one for one in path.glob("*.json") if one.with_suffix(".safetensors").is_file())
    if len(cards) == 1:
        return cards[0]
    found = f"{len(cards)} models" if cards else "neither"
    raise ValueError(f"{path} must be the folder of a run or of one exported model; it holds {found}")


def build_untrained(precision: str | None = None) -> Matcher:
    """The ImageNet network's read-outs compared, with the quadratic constraint on the graphs as they are."""
    from quadmatch.features.levels import build_extractor
    from quadmatch.matcher import Matcher
    from quadmatch.methods.dot_product import DotProduct

    return Matcher(build_extractor("frozen", precision=precision), DotProduct(), decoding={}).eval()


def build_default(precision: str | None = None, *, trained: str | os.PathLike[str] = TRAINED) -> Matcher:
    """For pictures of any kind: a trained model, the best unless another is named, and the untrained one in consensus.

    Where no trained model ships, the untrained one alone.
    """
    from quadmatch.layers.quadratic_constraint import QuadraticConstraint
    from quadmatch.matcher import Matcher
    from quadmatch.methods.consensus import WEIGHT, Consensus

    if trained == TRAINED and TRAINED not in list_models():
        return build_untrained(precision)
    own = load(trained, precision=precision)
    head = QuadraticConstraint(own.head, own.constraint) if own.constraint else own.head
    return Matcher(own.features, Consensus(head), decoding={"weight": WEIGHT}, threshold=DOUBT).eval()


def load_run(folder: Path, precision: str | None = None) -> Matcher:
    """What a run trained, with the parameters of its best checkpoint."""
    from quadmatch.experiments.build import build_matcher
    from quadmatch.models.checkpoints import load_into, load_parameters
    from quadmatch.models.runs import read_run

    matcher = build_matcher(read_run(folder).experiment, precision)
    load_into(matcher, load_parameters(folder), str(folder))
    return matcher.eval()


def read_card(path: Path) -> dict[str, Any]:
    """The card of a model, by either of its two files."""
    path = path.with_suffix(".json")
    if not path.is_file():
        raise FileNotFoundError(f"a model needs its card beside it: there is no file {path}")
    return read_record(path, FORMAT, {"sha256": str, "experiment": dict, "initial_weights": str})


def load_model(path: Path, precision: str | None = None) -> Matcher:
    """A model by either of its two files; nothing is used before its checksum is right."""
    from quadmatch.experiments.build import build_matcher
    from quadmatch.experiments.reading import check_experiment
    from quadmatch.features.extractor import FeatureExtractor
    from quadmatch.models.checkpoints import load_into

    card, file = read_card(path), path.with_suffix(".safetensors")
    stored = read_tensors(file, card["sha256"], "copy or export the model and its card again")
    matcher = build_matcher(check_experiment(card["experiment"], str(path)), precision or "auto")
    tensors = {key: value.float() for key, value in stored.items()}
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
    from quadmatch.models.runs import read_run

    if os.fspath(name_or_path) in (UNTRAINED, DEFAULT):
        return None
    place = find_model(name_or_path)
    if place.is_dir():
        return read_run(place).experiment.model_dump(mode="json")
    experiment: dict[str, Any] = read_card(place)["experiment"]
    return experiment


def _take(tensors: Mapping[str, Tensor], start: str) -> dict[str, Tensor]:
    return {key.removeprefix(start): value for key, value in tensors.items() if key.startswith(start)}


def identify_parameters(name_or_path: str | os.PathLike[str]) -> str:
    """A hash of a model's parameters: its name or folder may hold other ones later."""
    from quadmatch.features.weight_files import hash_state
    from quadmatch.models.checkpoints import load_parameters

    place = find_model(name_or_path)
    known: str = hash_state(load_parameters(place)) if place.is_dir() else read_card(place)["sha256"]
    return known


def identify_weights(state: Mapping[str, Tensor]) -> str:
    """A name for a network's weights, from its biases alone, which are quick to hash."""
    from quadmatch.features.weight_files import hash_state

    return hash_state({key: value for key, value in state.items() if key.endswith(".bias")})[:16]
