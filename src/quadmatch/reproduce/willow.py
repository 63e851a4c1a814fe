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
