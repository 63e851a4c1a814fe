"""Pascal VOC Keypoints: the accuracy of keypoints filtered by intersection, and F1 of all keypoints."""

TABLE = {
    "published": "voc-accuracy",
    "dataset": "pascal-voc",
    "split": "test",
    "protocol": "intersection",
    "figure": "accuracy",
    "pairs": 1000,
    "seeds": 1,
    "rows": {
        "nothing trained": {"model": "vgg16", "constraint": False},
        "constraint only": {"model": "vgg16"},
        "qc-DGM1": {"experiment": "qcdgm1_voc", "paper": "qc-DGM1"},
        "qc-DGM2": {"experiment": "qcdgm2_voc", "paper": "qc-DGM2"},
    },
}

F1 = TABLE | {
    "published": "voc-f1",
    "protocol": "unfiltered",
    "figure": "f1",
    "options": {"outside": "drop"},
    "rows": {
        "qc-DGM1": {"experiment": "qcdgm1_voc", "paper": "qc-DGM1"},
        "qc-DGM2": {"experiment": "qcdgm2_voc", "paper": "qc-DGM2"},
        "qc-DGM1, partial": {"experiment": "qcdgm1_voc", "partial": True, "paper": "qc-DGM1"},
        "qc-DGM2, partial": {"experiment": "qcdgm2_voc", "partial": True, "paper": "qc-DGM2"},
    },
}

BUDGET = ["training.steps=300", "training.average_decay=0.99", "training.flip=false"]
WITHOUT = ["head.options.quadratic_constraint=false", "decoding.weight=0.0"]

CONSTRAINT = TABLE | {
    "split": "validation",
    "seeds": 2,
    "rows": {
        "qc-DGM1": {"experiment": "qcdgm1_voc", "changes": BUDGET},
        "qc-DGM1, trained without": {"experiment": "qcdgm1_voc", "changes": BUDGET + WITHOUT},
        "qc-DGM1, only used without": {"experiment": "qcdgm1_voc", "changes": BUDGET, "constraint": False},
        "qc-DGM2": {"experiment": "qcdgm2_voc", "changes": BUDGET},
        "qc-DGM2, trained without": {"experiment": "qcdgm2_voc", "changes": BUDGET + WITHOUT},
        "qc-DGM2, only used without": {"experiment": "qcdgm2_voc", "changes": BUDGET, "constraint": False},
    },
}
