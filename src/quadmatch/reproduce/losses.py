"""Figure 8: the same network trained with three losses, on batches and on pictures that it never saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from quadmatch.reproduce.items import Figure, Output, Row, Settings
from quadmatch.reproduce.voc import BUDGET

EXPERIMENT = "qcdgm1_voc"
LOSSES = {
    "cross-entropy": ("loss.name=permutation", "loss.options={}"),
    "Hungarian attention": ("loss.name=hungarian_attention", "loss.options={}"),
    "false matching": ("loss.name=false_matching", "loss.options={alpha=2.0, beta=0.1}"),
}
"""By name, as changes of the experiment; none is weighed on earlier layers, so that only the loss differs."""
STEPS, MEASURED, WINDOW = 300, 25, 5
"""Steps of a run, steps between measurements on the validation split, and logged batches that a point averages."""
CHANGES = (
    *BUDGET,
    f"training.steps={STEPS}",
    f"training.validate_every={MEASURED}",
    "training.log_every=5",
    "training.average_decay=0.0",
    "head.options.dropout=0.0",
)
"""Nothing that hides overfitting or calms a loss down: no dropout, no average of parameters."""
KINDS = {"train": "training batches", "validation": "validation split"}
Log = Sequence[Mapping[str, Any]]


def make(settings: Settings) -> Output:
    """Train with each loss, and draw accuracy and loss of batches and of the validation split against steps."""
    from quadmatch.drawing.curves import Curve, draw_grid

    logs = train_all(settings)
    panels = {}
    for quantity in ("accuracy", "loss"):
        for kind, words in KINDS.items():
            curves = {name: Curve(*take_curve(log, kind, quantity)) for name, log in logs.items()}
            panels[f"{quantity}, {words}"] = curves
    picture = draw_grid(panels, x_label="step", logarithmic={name for name in panels if name.startswith("loss")})
    record = {
        "runs": {name: {"log": list(log), **summarise(log)} for name, log in logs.items()},
        "changes": [*CHANGES, *settings.changes],
    }
    heading = ["loss", "best validation accuracy", "at step", "in the end", "last batches", "largest gradient"]
    lines = [heading, *(describe(name, summarise(log)) for name, log in logs.items())]
    caption = (
        f"qc-DGM1 of ours on Pascal VOC, frozen features, {STEPS} steps without dropout or averaging; validation: 100 "
        "pairs a class; batches: mean of five logged ones. Losses differ in scale: compare shapes, not heights"
    )
    return Output("Three losses on Pascal VOC (figure 8)", caption, lines, record, picture)


def train_all(settings: Settings) -> dict[str, Log]:
    """The log of the run with each loss, trained or reused; a run that a number that is not finite ended too."""
    from quadmatch.reproduce.reuse import find_run, train
    from quadmatch.training.log import read_log
    from quadmatch.training.trainer import TrainingError

    logs: dict[str, Log] = {}
    for name in settings.follow(list(LOSSES), str):
        row = Row(EXPERIMENT, changes=CHANGES + LOSSES[name])
        try:
            folder = train(row, 0, "validation", settings)
        except TrainingError as error:
            settings.say(f"{name}: {error}")
            folder = find_run(row, 0, settings)
        logs[name] = read_log(folder)
    return logs


def take_curve(log: Log, kind: str, quantity: str) -> tuple[list[int], list[float]]:
    """Steps and values of one quantity; of batches, which jump, each point is the mean of five that were logged."""
    lines = [line for line in log if line["kind"] == kind]
    width = WINDOW if kind == "train" else 1
    chunks = [lines[start : start + width] for start in range(0, len(lines), width)]
    steps = [int(chunk[-1]["step"]) for chunk in chunks]
    return steps, [sum(line[quantity] for line in chunk) / len(chunk) for chunk in chunks]


def summarise(log: Log) -> dict[str, float]:
    """How far a run came, whether it fell back, and how large its gradient became."""
    steps, accuracy = take_curve(log, "validation", "accuracy")
    best = max(range(len(steps)), key=accuracy.__getitem__)
    return {
        "best": accuracy[best],
        "best_step": steps[best],
        "last": accuracy[-1],
        "batches": take_curve(log, "train", "accuracy")[1][-1],
        "largest_gradient": max(line["gradient_norm"] for line in log if line["kind"] == "train"),
    }


def describe(name: str, found: Mapping[str, float]) -> list[str]:
    """One line of the table."""
    figures = [f"{found['best']:.1f}", f"{found['best_step']:.0f}", f"{found['last']:.1f}", f"{found['batches']:.1f}"]
    return [name, *figures, f"{found['largest_gradient']:.3g}"]


FIGURE = Figure(about="accuracy and loss of three losses while they train on Pascal VOC (figure 8)", make=make)
