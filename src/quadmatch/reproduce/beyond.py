"""Beyond the paper: the strongest head here, what each of its parts is worth, and pairs with all their keypoints."""

from dataclasses import replace

from quadmatch.reproduce import willow
from quadmatch.reproduce.items import WITHOUT, Row, Table
from quadmatch.reproduce.voc import F1, TABLE

EXPERIMENT = "qcattention_voc"
NAME = "qc-attention"
LONGER = Row("qcattention_voc_longer", start=(Row(EXPERIMENT),))
VIEWS = Row("qcattention_voc_views", start=(Row("qcattention_voc_outliers", start=(LONGER,)),))
TRAINED = Row("qcattention_voc_mean", start=(VIEWS, Row("qcattention_voc_places", start=(VIEWS,))))
"""In six runs, each of which goes on where the one before ended; the third has points that match nothing, the fourth
views of one object, the fifth points between keypoints; the sixth is the mean of the fourth and the fifth."""
SHIPPED = Row(model="qcattention-voc")

ACCURACY = replace(
    TABLE,
    about="the strongest head here on Pascal VOC's validation split, with the constraint and without",
    split="validation",
    rows={
        f"{NAME} as shipped": SHIPPED,
        f"{NAME} as shipped, only used without": replace(SHIPPED, constraint=False),
        "qcdgm2-voc as shipped": Row(model="qcdgm2-voc", paper="qc-DGM2"),
        f"{NAME}, trained anew": TRAINED,
    },
    compared=(
        (f"{NAME} as shipped", f"{NAME} as shipped, only used without"),
        (f"{NAME} as shipped", "qcdgm2-voc as shipped"),
    ),
)

ALL_KEYPOINTS = replace(
    F1,
    about="F1 of all keypoints on Pascal VOC's validation split, nodes free to stay alone",
    split="validation",
    pairs=100,
    rows={
        f"{NAME} as shipped, partial": replace(SHIPPED, partial=True),
        f"{NAME} as shipped, forced": SHIPPED,
        "qcdgm2-voc as shipped, partial": Row(model="qcdgm2-voc", partial=True, paper="qc-DGM2"),
        "qcdgm2-voc as shipped, forced": Row(model="qcdgm2-voc", paper="qc-DGM2"),
    },
    note="All keypoints inside the box. A forced match gives every node of the smaller side a partner.",
)

ALONE = Row("qcattention_willow")
WILLOW = replace(
    willow.TABLE,
    about="the strongest head here on Willow, trained on its 100 pictures alone, and after Pascal VOC",
    rows={
        NAME: ALONE,
        f"{NAME}, without local maps": replace(ALONE, local_maps=0.0),
        f"{NAME}, only used without": replace(ALONE, constraint=False),
        f"{NAME}, with references": replace(ALONE, references="trainval"),
        f"{NAME} after VOC": willow.TUNED,
        f"{NAME} after VOC, without local maps": replace(willow.TUNED, local_maps=0.0),
        f"{NAME} after VOC, with references": replace(willow.TUNED, references="trainval"),
    },
    compared=(
        (NAME, f"{NAME}, without local maps"),
        (NAME, f"{NAME}, only used without"),
        (f"{NAME}, with references", NAME),
        (f"{NAME} after VOC", f"{NAME} after VOC, without local maps"),
    ),
    note="Frozen features of four layers; 150 steps on Willow's pictures alone, or 60 that begin with the shipped "
    "qcattention-voc. With references: each test picture is matched to the 20 labelled training pictures of its "
    "class, which vote on the names of its keypoints; equal names are matched.",
)

SHORT = ("training.steps=300", "training.average_decay=0.99", "training.validate_every=0")
PARTS = {
    "without the constraint": WITHOUT,
    "without SplineConv": ("head.options.convolutions=0",),
    "without attention": ("head.options.layers=0",),
    "two layers read": ("features.layers=['relu4_2', 'relu5_1']", "head.options.channels=1024"),
    "frame of the box alone": ("head.options.frame=box",),
    "no mirrored pictures": ("training.flip=false",),
    "no change of keypoints": ("training.augmentation={}", "head.options.erase=0.0"),
    "last layer alone trained": ("loss.options.earlier=0.0",),
    "filtered pairs alone": ("training.unfiltered=0.0",),
}
"""Changes of the whole, each of which leaves one part out."""
MORE = {
    "points between keypoints": Row(EXPERIMENT, changes=(*SHORT, "training.between=0.4")),
    "warped copies": Row(EXPERIMENT, changes=(*SHORT, "training.copies=0.25")),
    "keypoints moved against it": Row(EXPERIMENT, changes=(*SHORT, "training.adversary=4")),
    "last convolutions trained": Row(EXPERIMENT, changes=(*SHORT, "features.level=late")),
    "begun on coordinates alone": Row(
        EXPERIMENT, changes=SHORT, start=(Row(EXPERIMENT, changes=(*SHORT, "head.options.erase=1.0")),)
    ),
}
"""What was tried on top of the whole."""

LADDER: Table = replace(
    ACCURACY,
    about="parts of the strongest head, and more that was tried, within 300 steps, on the validation split",
    pairs=100,
    rows={"all parts": Row(EXPERIMENT, changes=SHORT)}
    | {name: Row(EXPERIMENT, changes=SHORT + changes) for name, changes in PARTS.items()}
    | MORE,
    compared=[*(("all parts", name) for name in PARTS), *((name, "all parts") for name in MORE)],
    note="Every row trained for 300 steps, as opposed to the thousands of the shipped model: early gains only.",
)
