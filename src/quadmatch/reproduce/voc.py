"""Pascal VOC Keypoints: the accuracy of keypoints filtered by intersection, and F1 of all keypoints."""

from dataclasses import replace

from quadmatch.reproduce.items import WITHOUT, Row, Table

TABLE = Table(
    about="accuracy on Pascal VOC (table 1)",
    published="voc-accuracy",
    dataset="pascal-voc",
    rows={
        "nothing trained": Row(model="vgg16", constraint=False),
        "constraint only": Row(model="vgg16"),
        "qc-DGM1": Row("qcdgm1_voc", paper="qc-DGM1"),
        "qc-DGM2": Row("qcdgm2_voc", paper="qc-DGM2"),
    },
)

F1 = replace(
    TABLE,
    about="F1 on Pascal VOC, keypoints not filtered (table 2)",
    published="voc-f1",
    protocol="unfiltered",
    metric="f1",
    options={"outside": "drop"},
    rows={
        "qc-DGM1": Row("qcdgm1_voc", paper="qc-DGM1"),
        "qc-DGM2": Row("qcdgm2_voc", paper="qc-DGM2"),
        "qc-DGM1, partial": Row("qcdgm1_voc", partial=True, paper="qc-DGM1"),
        "qc-DGM2, partial": Row("qcdgm2_voc", partial=True, paper="qc-DGM2"),
    },
)

BUDGET = ("training.steps=300", "training.average_decay=0.99", "training.flip=false")

CONSTRAINT = replace(
    TABLE,
    about="Pascal VOC with and without the quadratic constraint, on the validation split",
    split="validation",
    seeds=2,
    rows={
        "qc-DGM1": Row("qcdgm1_voc", changes=BUDGET),
        "qc-DGM1, trained without": Row("qcdgm1_voc", changes=BUDGET + WITHOUT),
        "qc-DGM1, only used without": Row("qcdgm1_voc", changes=BUDGET, constraint=False),
        "qc-DGM2": Row("qcdgm2_voc", changes=BUDGET),
        "qc-DGM2, trained without": Row("qcdgm2_voc", changes=BUDGET + WITHOUT),
        "qc-DGM2, only used without": Row("qcdgm2_voc", changes=BUDGET, constraint=False),
    },
)
