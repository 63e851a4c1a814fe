"""Willow Object Class: trained on 20 pictures a class and nothing else, tested on the rest."""

from dataclasses import replace

from quadmatch.reproduce.items import WITHOUT, Row, Table

PEERS = {
    "HARG-SSVM (VGG16, not SIFT)": "harg_willow",
    "GMN": "gmn_willow",
    "GMN_D": "gmnd_willow",
    "qc-GMN": "qcgmn_willow",
    "PCA": "pca_willow",
    "qc-PCA": "qcpca_willow",
    "PCA-H": "pcah_willow",
    "PCA-F": "pcaf_willow",
    "NGM": "ngm_willow",
    "GLMNet": "glmnet_willow",
    "LCSGM": "lcsgm_willow",
    "CIE1-H": "cie_willow",
    "BB-GM (solver of our own)": "bbgm_willow",
}
"""What the paper compares with, by its name there and what differs; all on frozen features and within one budget."""

TABLE = Table(
    about="accuracy on Willow Object Class (table 3)",
    published="willow-accuracy",
    dataset="willow",
    seeds=5,
    rows={
        "nothing trained": Row(model="vgg16", constraint=False),
        "constraint only": Row(model="vgg16"),
        **{name: Row(experiment, paper=name.partition(" (")[0]) for name, experiment in PEERS.items()},
        "qc-DGM1": Row("qcdgm1_willow", paper="qc-DGM1"),
        "qc-DGM2": Row("qcdgm2_willow", paper="qc-DGM2"),
    },
)

CONSTRAINT = replace(
    TABLE,
    about="Willow with and without the quadratic constraint",
    rows={
        "qc-DGM1": Row("qcdgm1_willow"),
        "qc-DGM1, trained without": Row("qcdgm1_willow", changes=WITHOUT),
        "qc-DGM1, only used without": Row("qcdgm1_willow", constraint=False),
        "qc-DGM2": Row("qcdgm2_willow"),
        "qc-DGM2, trained without": Row("qcdgm2_willow", changes=WITHOUT),
        "qc-DGM2, only used without": Row("qcdgm2_willow", constraint=False),
    },
)

READINGS = replace(
    TABLE,
    about="Willow, qc-DGM1 as the paper prints it and as its authors released it",
    seeds=3,
    rows={
        "as printed": Row("qcdgm1_willow_paper", paper="qc-DGM1"),
        "as printed, our decoding": Row("qcdgm1_willow_paper", decoding={}),
        "as printed, only used without": Row("qcdgm1_willow_paper", constraint=False),
        "as printed, trained without": Row("qcdgm1_willow_paper", changes=WITHOUT),
        "as released": Row("qcdgm1_willow_released", paper="qc-DGM1"),
        "as released, our decoding": Row("qcdgm1_willow_released", decoding={}),
        "as released, only used without": Row("qcdgm1_willow_released", constraint=False),
        "as released, trained without": Row("qcdgm1_willow_released", changes=WITHOUT),
    },
)

FINE_TUNING = (
    "data.name=willow",
    "data.split=trainval",
    "training.classes=5",
    "training.steps=200",
    "training.learning_rate=1e-4",
    "training.backbone_learning_rate=2e-5",
    "training.validate_every=0",
)


def _fine_tune(number: int) -> Row:
    changes = (*FINE_TUNING, f"training.start=qcdgm{number}-voc")
    return Row(f"qcdgm{number}_voc", changes=changes, paper=f"qc-DGM{number}")


# The shipped models saw all of Pascal VOC's train split, 51 cars and motorbikes of 2007 included, the year
# from which Willow's cars and motorbikes come; published rows with pre-training say that they left those out.
PRETRAINED = replace(
    TABLE,
    about="Willow after training on Pascal VOC",
    rows={"qc-DGM1 after VOC": _fine_tune(1), "qc-DGM2 after VOC": _fine_tune(2)},
)
