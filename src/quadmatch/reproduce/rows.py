"""The rows that the paper's tables have in common: every method of it, as experiments on one data set."""

from __future__ import annotations

from quadmatch.reproduce.items import WITHOUT, Row

PEERS = {
    "GMN": "gmn",
    "GMN_D": "gmnd",
    "qc-GMN": "qcgmn",
    "PCA": "pca",
    "qc-PCA": "qcpca",
    "PCA-H": "pcah",
    "PCA-F": "pcaf",
    "NGM": "ngm",
    "GLMNet": "glmnet",
    "LCSGM": "lcsgm",
    "CIE1-H": "cie",
    "BB-GM (solver of our own)": "bbgm",
}
"""What the paper compares with, by its name there and what differs, and how its experiments begin."""
READINGS = {", as printed": "_paper", ", as released": "_released"}
"""Two readings of the published qc-DGM, the paper's and its authors' code's; rows without such a word are ours.

Each has a second row with our inference in place of its own: what the difference between the two is worth.
"""
CONSTRAINED = (("qc-GMN", "GMN"), ("qc-PCA", "PCA"), ("qc-DGM1", "DGM1"), ("qc-DGM2", "DGM2"))
"""Rows with the constraint beside the same network trained and used without it."""

ORDER = (("BB-GM (solver of our own)", "qc-DGM1"), ("qc-DGM1", "PCA"), ("PCA", "GMN"))
"""Rows that the published figures put in this order."""


def list_rows(data: str, changes: tuple[str, ...] = (), published: tuple[str, ...] = ()) -> dict[str, Row]:
    """Every method of the paper on `willow` or `voc`, its experiments with the same changes: one budget for all.

    More changes may be `published` networks' alone: what stands in for the dropout that ours have.
    """
    theirs = changes + published
    rows = {
        name: Row(f"{start}_{data}", changes=theirs, paper=name.partition(" (")[0]) for name, start in PEERS.items()
    }
    for number in (1, 2):
        experiment, name = f"qcdgm{number}_{data}", f"qc-DGM{number}"
        for words, reading in READINGS.items():
            rows[name + words] = Row(experiment + reading, changes=theirs, paper=name)
            rows[f"{name}{words}, our decoding"] = Row(experiment + reading, changes=theirs, decoding={})
        rows[name] = Row(experiment, changes=changes, paper=name)
        rows[name.removeprefix("qc-")] = Row(experiment, changes=changes + WITHOUT)
    return rows


NAMED = {
    "DGM1",
    "DGM2",
    "DGM1 after VOC",
    "DGM2 after VOC",
    "qcdgm1-voc as shipped",
    "qcdgm2-voc as shipped",
    "raw attributes",
    "all",
}
"""How labels begin, besides `qc-`, whose network is ours unless they name a reading."""


def tell_network(label: str) -> str:
    """The label of a row, which says so where the network is ours although its name is that of the paper's."""
    ours = label.partition(",")[0].removeprefix("qc-") in NAMED and not any(words in label for words in READINGS)
    return f"{label}, ours (compact)" if ours else label
