"""Willow Object Class: trained on 20 pictures a class and nothing else, tested on the rest."""

TABLE = {
    "published": "willow-accuracy",
    "dataset": "willow",
    "split": "test",
    "protocol": "intersection",
    "figure": "accuracy",
    "pairs": 1000,
    "seeds": 5,
    "rows": {
        "nothing trained": {"model": "vgg16", "constraint": False},
        "constraint only": {"model": "vgg16"},
        "qc-DGM1": {"experiment": "qcdgm1_willow", "paper": "qc-DGM1"},
        "qc-DGM2": {"experiment": "qcdgm2_willow", "paper": "qc-DGM2"},
    },
}

WITHOUT = ["head.options.quadratic_constraint=false", "decoding.weight=0.0"]

CONSTRAINT = TABLE | {
    "rows": {
        "qc-DGM1": {"experiment": "qcdgm1_willow"},
        "qc-DGM1, trained without": {"experiment": "qcdgm1_willow", "changes": WITHOUT},
        "qc-DGM1, only used without": {"experiment": "qcdgm1_willow", "constraint": False},
        "qc-DGM2": {"experiment": "qcdgm2_willow"},
        "qc-DGM2, trained without": {"experiment": "qcdgm2_willow", "changes": WITHOUT},
        "qc-DGM2, only used without": {"experiment": "qcdgm2_willow", "constraint": False},
    },
}

FINE_TUNING = [
    "data.name=willow",
    "data.split=trainval",
    "training.classes=5",
    "training.steps=200",
    "training.learning_rate=1e-4",
    "training.backbone_learning_rate=2e-5",
    "training.validate_every=0",
]

# The shipped models saw all of Pascal VOC's train split, 51 cars and motorbikes of 2007 included, the year
# from which Willow's cars and motorbikes come; published rows with pre-training say that they left those out.
PRETRAINED = TABLE | {
    "rows": {
        "qc-DGM1 after VOC": {
            "experiment": "qcdgm1_voc",
            "changes": [*FINE_TUNING, "training.start=qcdgm1-voc"],
            "paper": "qc-DGM1",
        },
        "qc-DGM2 after VOC": {
            "experiment": "qcdgm2_voc",
            "changes": [*FINE_TUNING, "training.start=qcdgm2-voc"],
            "paper": "qc-DGM2",
        },
    },
}
