"""The sections of an experiment, each key with its meaning, its type and what it may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    field_validator,
)

from quadmatch.options import check_options

Share = Annotated[float, Field(ge=0, le=1)]


class Section(BaseModel):
    """A table of the TOML file; a key that it does not know is an error."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False, validate_default=True
    )


def _choose(value: str, known: Mapping[str, object]) -> str:
    if value not in known:
        raise ValueError(f"must be one of {', '.join(sorted(known))}")
    return value


class DataSection(Section):
    """Which objects are seen, and how they are paired."""

    name: str
    """Of a data set, as `quadmatch data` lists them."""
    root: Path | None = None
    """Folder that the data set is in; the usual one if left out."""
    split: str = "train"
    """The part that is trained on."""
    validation: str = "validation"
    """The part on which progress is measured."""
    protocol: Literal["intersection", "inclusion", "unfiltered"] = "intersection"
    """Which keypoints of a pair take part."""
    construction: str = "delaunay"
    """What joins keypoints to a graph."""
    size: PositiveInt = 256
    """Pixels on a side of the crop."""
    options: dict[str, Any] = {}
    """More keywords of the data set's loader, such as `crop` or `outside`."""

    @field_validator("name")
    @classmethod
    def _check_name(cls, value: str) -> str:
        from quadmatch.datasets import DATASETS

        return _choose(value, DATASETS)

    @field_validator("construction")
    @classmethod
    def _check_construction(cls, value: str) -> str:
        from quadmatch.delaunay import CONSTRUCTIONS

        return _choose(value, CONSTRUCTIONS)

    @field_validator("options")
    @classmethod
    def _check_options(cls, value: dict[str, Any], info: Any) -> dict[str, Any]:
        from quadmatch.datasets import DATASETS

        return _check(value, info, "name", DATASETS, "root", "split")


class FeaturesSection(Section):
    """What is read from the images, and which part of it is trained."""

    level: Literal["frozen", "local", "full"] = "local"
    """Nothing trained; the last convolutions trained at the keypoints alone; the whole network trained."""
    trunk: Literal["vgg16", "vgg16_bn"] = "vgg16"
    """The network; with batch normalisation only from a weights file."""
    weights: Path | None = None
    """A file of weights under torchvision's names; found by itself if left out."""
    cache: Path | None = None
    """Folder in which activations of the frozen part are kept; the usual one if left out."""
    precision: str = "auto"
    """Number format of the convolutions, as in `bfloat16,channels_last,2`; measured if `auto`."""


class HeadSection(Section):
    """The method."""

    method: str
    """Name of the method."""
    options: dict[str, Any] = {}
    """Keywords of the method."""

    @field_validator("method")
    @classmethod
    def _check_name(cls, value: str) -> str:
        from quadmatch.methods import METHODS

        return _choose(value, METHODS)

    @field_validator("options")
    @classmethod
    def _check_options(cls, value: dict[str, Any], info: Any) -> dict[str, Any]:
        from quadmatch.methods import METHODS

        return _check(value, info, "method", METHODS)


class LossSection(Section):
    """What training minimises."""

    name: str = "false_matching"
    """Name of the loss."""
    options: dict[str, Any] = {}
    """Keywords of the loss."""

    @field_validator("name")
    @classmethod
    def _check_name(cls, value: str) -> str:
        from quadmatch.losses import LOSSES

        return _choose(value, LOSSES)

    @field_validator("options")
    @classmethod
    def _check_options(cls, value: dict[str, Any], info: Any) -> dict[str, Any]:
        from quadmatch.losses import LOSSES

        return _check(value, info, "name", LOSSES)


class TrainingSection(Section):
    """How parameters are found."""

    seed: NonNegativeInt = 0
    """Of the initial parameters, the batches and dropout."""
    start: str | None = None
    """A run folder or a shipped model whose parameters training begins with."""
    steps: PositiveInt = 1000
    """Batches in all."""
    classes: PositiveInt = 8
    """Categories in a batch."""
    objects: Annotated[int, Field(ge=2)] = 4
    """Objects of each category in a batch; all their pairs are trained on."""
    flip: bool = False
    """Whether every object is also seen in a mirror, left and right in its keypoints' names exchanged."""
    optimiser: Literal["sgd", "adam", "adamw"] = "adamw"
    """AdamW decouples weight decay from the gradient, Adam does not."""
    learning_rate: PositiveFloat = 5e-4
    """Of the head, at its highest."""
    backbone_learning_rate: NonNegativeFloat = 5e-5
    """Of the convolutions, at its highest."""
    weight_decay: NonNegativeFloat = 0.0
    """Of matrices and convolutions; biases and normalisations have none."""
    momentum: Share = 0.9
    """Of SGD."""
    nesterov: bool = True
    """Whether SGD looks ahead."""
    schedule: Literal["constant", "cosine", "one_cycle", "step"] = "one_cycle"
    """How the learning rates change; `cosine` and `one_cycle` end at a ten-thousandth of the highest."""
    warmup: Share = 0.1
    """Share of the steps in which the rates rise."""
    milestones: tuple[Share, ...] = ()
    """Shares of the steps at which schedule `step` multiplies the rates by `decay`."""
    decay: PositiveFloat = 0.1
    """Factor of schedule `step`."""
    gradient_clip: PositiveFloat | None = None
    """Largest norm of the gradient of all parameters."""
    average_decay: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Of the exponential moving average of parameters, which is what is evaluated and used; 0: none."""
    validate_every: NonNegativeInt = 0
    """Steps between measurements on the validation split; 0: none, and the last parameters are the best."""
    validation_pairs: PositiveInt = 100
    """Pairs of each category in such a measurement."""
    patience: PositiveInt | None = None
    """Measurements without a better one after which training stops."""
    checkpoint_steps: PositiveInt | None = None
    """Steps between checkpoints."""
    checkpoint_seconds: PositiveFloat | None = 120.0
    """Seconds between checkpoints, whichever comes first."""
    log_every: PositiveInt = 20
    """Steps between lines of the log."""
    device: str = "cpu"
    """Where the network is trained, as torch names it."""
    threads: PositiveInt | None = None
    """Processor threads; the number of physical cores if left out."""


class DecodingSection(Section):
    """How a soft assignment becomes a permutation."""

    weight: Share = 0.1
    """Of the quadratic term; 0 is Hungarian matching alone."""
    threshold: float = 0.2
    """Assignment below which a partial match leaves two keypoints alone."""
    binary_structure: bool = False
    """Compare which edges exist, not their weights."""
    masked_residual: bool = False
    """Count only edges of the source that the target does not have."""


def _check(
    value: dict[str, Any],
    info: Any,
    key: str,
    factories: Mapping[str, Callable[..., Any]],
    *given: str,
) -> dict[str, Any]:
    """Options checked against the factory that the section names, if that name is right."""
    name = info.data.get(key)
    return value if name is None else check_options(factories[name], value, given)
