"""Tables and figures of the paper: one command makes each, beside what was published."""

from __future__ import annotations

from quadmatch.reproduce import beyond, losses, scores, unseen, voc, willow
from quadmatch.reproduce.figures import DRAWN, MEASURED
from quadmatch.reproduce.items import Figure, Table

ITEMS: dict[str, Table | Figure] = {
    **DRAWN,
    "willow": willow.TABLE,
    "willow-plain": willow.PLAIN,
    "willow-constraint": willow.CONSTRAINT,
    **MEASURED,
    "willow-readings": willow.READINGS,
    "willow-folds": willow.FOLDS,
    "voc-reduced": voc.REDUCED,
    "willow-after-voc": willow.AFTER_VOC,
    "voc-f1-reduced": voc.F1_REDUCED,
    "scores": scores.FIGURE,
    "ablation": voc.ABLATION,
    "losses": losses.FIGURE,
    "beyond-willow": beyond.WILLOW,
    "beyond-ladder": beyond.LADDER,
    "willow-pretrained": willow.PRETRAINED,
    "voc-constraint": voc.CONSTRAINT,
    "voc-finalists": voc.FINALISTS,
    "voc": voc.TABLE,
    "voc-f1": voc.F1,
    "beyond": beyond.ACCURACY,
    "beyond-f1": beyond.ALL_KEYPOINTS,
    "beyond-unseen": unseen.FIGURE,
}
"""All that `quadmatch reproduce` knows, by name, what gives results early first: `all` makes them in this order.

A new one is a file beside this one and a line here.
"""
