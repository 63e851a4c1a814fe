"""The sections of an experiment, each key with its meaning, its type and what it may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from quadmatch.datasets import DATASETS
from quadmatch.decode import decode
from quadmatch.delaunay import CONSTRUCTIONS
from quadmatch.experiments.options import OptionsError, check_options, list_options
from quadmatch.features.vgg import Layer
from quadmatch.layers.quadratic_constraint import QuadraticStep
from quadmatch.losses import LOSSES
from quadmatch.methods import METHODS

Options = dict[str, Any]
LARGEST = 10**9
"""Of whatever is counted: steps, objects, pixels."""
Count = Annotated[int, Field(ge=1, le=LARGEST)]


def _refuse_nul(value: Path | str) -> Path | str:
    """A path that the system can look up."""
    if "\0" in str(value):
        raise ValueError("no file or folder has NUL in its name")
    return value


Text = Annotated[str, AfterValidator(_refuse_nul)]
Place = Annotated[Path, AfterValidator(_refuse_nul)]


class Section(BaseModel):
    """A table of the TOML file; a key that it does not know is an error."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False, validate_default=True
    )


def one_of(known: Mapping[str, object]) -> AfterValidator:
    """A check that a name is one of those known."""

    def check(value: str) -> str:
        if value not in known and value.removeprefix("qc") in known:
            raise ValueError(f"is {value.removeprefix('qc')!r} with a table [constraint]")
        if value not in known:
            raise ValueError(f"must be one of {', '.join(sorted(known))}")
        return value

    return AfterValidator(check)


def keywords_of(part: Callable[..., Any], *given: str) -> AfterValidator:
    """A check that options are keywords of a part, other than those that it is given anyway."""

    def check(value: Options) -> Options:
        checked = check_options(part, value, given)
        if not 0 <= checked.get("weight", 0) <= 1:
            raise OptionsError({"weight": f"must be from 0 to 1, got {checked['weight']}"})
        return checked

    return AfterValidator(check)


def keywords_of_chosen(parts: Mapping[str, Callable[..., Any]], key: str, *given: str) -> AfterValidator:
    """A check that options are keywords of the part that the section names under `key`, if that name is right."""

    def check(value: Options, info: Any) -> Options:
        name = info.data.get(key)
        if name is None:
            return value
        unknown = set(value) - set(list_options(parts[name]))
        if key == "method" and (moved := sorted(unknown & set(list_options(QuadraticStep)))):
            raise OptionsError(dict.fromkeys(moved, "belongs to constraint.network"))
        return check_options(parts[name], value, given)

    return AfterValidator(check)


class DataSection(Section):
    """Which objects are seen, and how they are paired."""

    name: Annotated[str, one_of(DATASETS)]
    """Name of the data set: willow, pascal-voc, folder or photo-warps."""
    root: Place | None = None
    """Folder that the data set is in; the usual one if left out."""
    split: str = "train"
    """The part that is trained on."""
    validation: str = "validation"
    """The part on which progress is measured."""
    protocol: Literal["intersection", "inclusion", "unfiltered"] = "intersection"
    """Which keypoints of a pair take part."""
    construction: Annotated[str, one_of(CONSTRUCTIONS)] = "delaunay"
    """What joins keypoints to a graph."""
    size: Count = 256
    """Pixels on a side of the crop."""
    options: Annotated[Options, keywords_of_chosen(DATASETS, "name", "root", "split")] = {}
    """More keywords of the data set's loader, such as `crop` or `outside`."""


class FeaturesSection(Section):
    """What is read from the images, and which part of it is trained."""

    level: Literal["frozen", "local", "late", "full"] = "local"
    """Nothing trained; the last convolutions at the keypoints alone; the last three; the whole network."""
    trunk: Literal["vgg16", "vgg16_bn"] = "vgg16"
    """The network; with batch normalisation only from a weights file."""
    weights: Place | None = None
    """A file of weights under torchvision's names; found by itself if left out."""
    cache: Place | None = None
    """Folder in which activations of the frozen part are kept; the usual one if left out."""
    layers: tuple[Layer, ...] | None = None
    """Layers that are read at the keypoints, at levels `frozen` and `late`; relu4_2 and relu5_1 if left out."""
    precision: str = "auto"
    """Number format of the convolutions, as in `bfloat16,channels_last,2`; measured if `auto`."""


class HeadSection(Section):
    """The method."""

    method: Annotated[str, one_of(METHODS)]
    """Name of the method."""
    options: Annotated[Options, keywords_of_chosen(METHODS, "method")] = {}
    """Keywords of the method."""


class ConstraintSection(Section):
    """The quadratic constraint; without this table there is none, neither in the network nor in decoding."""

    learned: bool = True
    """Whether the network has the constraint too; false: a match is decoded under it, and that is all."""
    network: Annotated[Options, keywords_of(QuadraticStep)] = {}
    """Keywords of `QuadraticStep`, the constraint in the network."""
    decoding: Annotated[Options, keywords_of(decode, "matching", "mask", "threshold", "iterations")] = {}
    """Keywords of `decode`, the constraint on permutations, such as `weight`."""


class LossSection(Section):
    """What training minimises."""

    name: Annotated[str, one_of(LOSSES)] = "false_matching"
    """Name of the loss."""
    options: Annotated[Options, keywords_of_chosen(LOSSES, "name")] = {}
    """Keywords of the loss."""


class DecodingSection(Section):
    """How a soft assignment becomes a permutation."""

    threshold: float = 0.2
    """Assignment below which a partial match leaves two keypoints alone; n/m of it for n keypoints against m, more."""
    local_maps: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Doubt of an assignment where affine maps, fitted around each keypoint, say otherwise; 0: no such maps."""
