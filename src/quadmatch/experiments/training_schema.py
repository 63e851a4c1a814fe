"""The section of an experiment that says how parameters are found."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, model_validator

from quadmatch.experiments.schema import LARGEST, Count, Section, Text

Amount = Annotated[int, Field(ge=0, le=LARGEST)]
Share = Annotated[float, Field(ge=0, le=1)]


def _list_names(given: Any) -> Any:
    """One name, or none, as a list of names."""
    return [] if given is None else [given] if isinstance(given, str) else given


class AugmentationSection(Section):
    """How much the pairs of a training batch are changed at random; 0 leaves them as they are."""

    affine: NonNegativeFloat = 0.0
    """Standard deviation of the entries of a linear map of a graph's keypoints: they turn, stretch and shear."""
    jitter: NonNegativeFloat = 0.0
    """Standard deviation, in pixels of the crop, by which keypoints are moved."""
    dropout: Share = 0.0
    """Share of the keypoints that are left out, each together with its partner."""
    articulation: NonNegativeFloat = 0.0
    """Standard deviation, in radians, of the angle by which a part of each graph turns about one of its keypoints."""
    features: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of each object's image features that are left out, each by itself."""


class TrainingSection(Section):
    """How parameters are found."""

    seed: NonNegativeInt = 0
    """Seed of the initial parameters, the batches and dropout."""
    start: Annotated[tuple[Text, ...], BeforeValidator(_list_names)] = ()
    """A run folder or a shipped model whose parameters training begins with; of several the mean of theirs."""
    steps: Amount = 1000
    """Batches in all; the schedule of the learning rates extends over so many. 0: nothing but what `start` gives."""
    stop: Count | None = None
    """Step at which training ends, where that is before the last; a resumed run may set another."""
    classes: Count = 8
    """Categories in a batch."""
    objects: Annotated[int, Field(ge=2, le=LARGEST)] = 4
    """Objects of each category in a batch; all their pairs are trained on."""
    unfiltered: Share = 0.0
    """Share of the steps in which pairs keep all their keypoints, whatever `data.protocol` says."""
    strangers: Amount = 0
    """Pairs of objects of different categories, which have nothing in common, in each of those steps."""
    outliers: Amount = 0
    """At most so many points anywhere in each crop that match nothing, in half of the steps; the seed says where."""
    views: Share = 0.0
    """Share of the steps that match warped views of one object with each other, in place of different objects."""
    view_objects: Count = 1000
    """Objects of which there are views, no more than the split has."""
    copies: NonNegativeFloat = 0.0
    """Warped and relit copies of each object, on average, as further objects of its category."""
    copy_strength: PositiveFloat = 1.0
    """How far copies are warped; 1 turns by up to 29 degrees."""
    between: Share = 0.0
    """Share of the steps in which objects also have points half-way between neighbouring keypoints."""
    flip: bool = False
    """Whether every object is also seen in a mirror, left and right in its keypoints' names exchanged."""
    augmentation: AugmentationSection = AugmentationSection()
    """Changes of each batch at random: `affine` maps, `jitter` moves, `dropout` and `features` leave out."""
    adversary: NonNegativeFloat = 0.0
    """Pixels by which half of the steps move each coordinate of a keypoint to where the loss is larger."""
    optimiser: Literal["sgd", "adam", "adamw"] = "adamw"
    """AdamW decouples weight decay from the gradient, Adam does not."""
    learning_rate: PositiveFloat = 5e-4
    """Learning rate of the head where the schedule is highest."""
    backbone_learning_rate: NonNegativeFloat = 5e-5
    """Learning rate of the convolutions where the schedule is highest."""
    weight_decay: NonNegativeFloat = 0.0
    """Weight decay of matrices and convolutions; biases and normalisations have none."""
    momentum: Share = 0.9
    """Momentum of SGD; the other optimisers have their own."""
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
    """Decay of the moving average of parameters, which is what is evaluated and used; 0: no average."""
    validate_every: Amount = 0
    """Steps between measurements on the validation split; 0: none, and the last parameters are the best."""
    validation_pairs: Count = 100
    """Pairs of each category in such a measurement."""
    patience: Count | None = None
    """Measurements without a better one after which training stops."""
    checkpoint_steps: Count | None = None
    """Steps between checkpoints."""
    checkpoint_seconds: PositiveFloat | None = 120.0
    """Seconds between checkpoints, whichever comes first."""
    log_every: Count = 20
    """Steps between lines of the log."""
    device: str = "cpu"
    """Where the network is trained, as torch names it."""
    threads: Count | None = None
    """Processor threads; the number of physical cores if left out."""

    @model_validator(mode="after")
    def _need_something(self) -> TrainingSection:
        if self.steps == 0 and not self.start:
            raise ValueError("no steps and no start make no network: give start, or more steps")
        return self
