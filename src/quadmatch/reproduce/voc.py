"""Pascal VOC Keypoints: the accuracy of keypoints filtered by intersection, and F1 of all keypoints.

The full tables train each experiment as it is and test on the test split. The reduced ones train every method within
one budget that a processor core can pay, and test on the validation split, 10 % of the training pictures.
"""

from dataclasses import replace

from quadmatch.reproduce.items import WITHOUT, Row, Table
from quadmatch.reproduce.rows import CONSTRAINED, ORDER, list_rows

UNTRAINED = {"nothing trained": Row(model="vgg16", constraint=False), "constraint only": Row(model="vgg16")}

TABLE = Table(
    about="accuracy on Pascal VOC (table 1)",
    published="voc-accuracy",
    dataset="pascal-voc",
    rows={**UNTRAINED, **list_rows("voc")},
    compared=CONSTRAINED + ORDER,
)

BUDGET = (
    "training.steps=150",
    "training.average_decay=0.99",
    "training.flip=false",
    "training.learning_rate=1e-3",
    "training.validate_every=0",
    "features.level=frozen",
)

REDUCED = replace(
    TABLE,
    about="every method of table 1 within one reduced budget, on the validation split",
    split="validation",
    pairs=100,
    rows={**UNTRAINED, **list_rows("voc", BUDGET)},
    note="Every row within one budget: 150 steps of 8 classes × 4 objects and all their pairs, AdamW at 1e-3, one "
    "cycle, frozen features of VGG16, no mirrored pictures. The paper's figures are of 560,000 pairs, with the "
    "convolutions trained, on the test split: they stand beside for the order, not for the height. qc-DGM as printed "
    "and as released are the published networks, those without such a word are ours.",
)

LONGER = (*BUDGET, "training.steps=1500", "training.average_decay=0.999")

FINALISTS = replace(
    REDUCED,
    about="the strongest methods of voc-reduced trained ten times as long, on the validation split",
    rows={
        name: replace(REDUCED.rows[name], changes=LONGER + REDUCED.rows[name].changes[len(BUDGET) :])
        for name in ("qc-PCA", "BB-GM (solver of our own)", "qc-DGM1", "DGM1", "qc-DGM2", "DGM2")
    },
    compared=(*CONSTRAINED[2:], ORDER[0], ("BB-GM (solver of our own)", "qc-DGM2"), ("qc-DGM1", "qc-PCA")),
    note="As voc-reduced, but 1,500 steps, ten times as many, and a slower moving average. Features are frozen still.",
)

UNFILTERED = ("data.protocol=unfiltered", "data.options={outside='drop'}")


def _list_f1(changes: tuple[str, ...]) -> dict[str, Row]:
    """qc-DGM and BB-GM trained on all keypoints, forced to match as many as can be, and free to leave some alone."""
    rows = {}
    for number in (1, 2):
        name, experiment = f"qc-DGM{number}", f"qcdgm{number}_voc"
        rows[name] = Row(experiment, changes=changes, paper=name)
        rows[f"{name}, partial"] = Row(experiment, changes=changes, partial=True, paper=name)
        rows[f"{name}, decoded without"] = Row(experiment, changes=changes, decoding={"weight": 0.0})
        rows[f"{name}, trained without"] = Row(experiment, changes=changes + WITHOUT)
    maximal = (*changes, "head.options.maximal=true")
    rows["BB-GM-Max (solver of our own)"] = Row("bbgm_voc", changes=maximal, paper="BB-GM-Max")
    rows["BB-GM (solver of our own), partial"] = Row("bbgm_voc", changes=changes, partial=True, paper="BB-GM")
    return rows


F1 = replace(
    TABLE,
    about="F1 on Pascal VOC, keypoints not filtered (table 2)",
    published="voc-f1",
    protocol="unfiltered",
    metric="f1",
    options={"outside": "drop"},
    rows=_list_f1(UNFILTERED),
    compared=(),
    note="All keypoints inside the box, in training and test. Rows without the word partial match as many as the "
    "smaller side has, as the paper's do; decoded without: the constraint in the network alone.",
)

F1_REDUCED = replace(
    F1,
    about="F1 on Pascal VOC within the reduced budget, on the validation split",
    split="validation",
    pairs=100,
    rows=_list_f1(BUDGET + UNFILTERED),
    note=f"{F1.note} Budget and split as in voc-reduced.",
)

PARTS = {
    "raw attributes": ("head.options.geometric_prior=false", "head.options.structural_context=false", *WITHOUT),
    "raw attributes, geometric prior": ("head.options.structural_context=false", *WITHOUT),
    "raw attributes, geometric prior, structural context": WITHOUT,
    "all, with the quadratic constraint": (),
}
"""The rows of the paper's ablation, each with one part more, as changes of the whole."""

ABLATION = replace(
    REDUCED,
    about="parts of qc-DGM1 on Pascal VOC, one more in each row (table 4), within the reduced budget",
    published="voc-ablation",
    rows={
        f"{name}{words}": Row(f"qcdgm1_voc{reading}", changes=BUDGET + changes, paper=name)
        for words, reading in (("", ""), (", as printed", "_paper"))
        for name, changes in PARTS.items()
    },
    compared=[
        (f"{more}{words}", f"{less}{words}")
        for words in ("", ", as printed")
        for less, more in zip(PARTS, list(PARTS)[1:])
    ],
)

SHORT = ("training.steps=300", "training.average_decay=0.99", "training.flip=false")

CONSTRAINT = replace(
    TABLE,
    about="Pascal VOC with and without the quadratic constraint, on the validation split",
    split="validation",
    seeds=2,
    rows={
        "qc-DGM1": Row("qcdgm1_voc", changes=SHORT),
        "qc-DGM1, trained without": Row("qcdgm1_voc", changes=SHORT + WITHOUT),
        "qc-DGM1, only used without": Row("qcdgm1_voc", changes=SHORT, constraint=False),
        "qc-DGM2": Row("qcdgm2_voc", changes=SHORT),
        "qc-DGM2, trained without": Row("qcdgm2_voc", changes=SHORT + WITHOUT),
        "qc-DGM2, only used without": Row("qcdgm2_voc", changes=SHORT, constraint=False),
    },
    compared=(("qc-DGM1", "qc-DGM1, trained without"), ("qc-DGM2", "qc-DGM2, trained without")),
)
