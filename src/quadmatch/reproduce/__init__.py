"""Tables and figures of the paper: one command makes each, beside what was published."""

from __future__ import annotations

from quadmatch.reproduce import scores, voc, willow
from quadmatch.reproduce.items import Figure, Table

ITEMS: dict[str, Table | Figure] = {
    "willow": willow.TABLE,
    "willow-constraint": willow.CONSTRAINT,
    "willow-readings": willow.READINGS,
    "willow-pretrained": willow.PRETRAINED,
    "voc": voc.TABLE,
    "voc-f1": voc.F1,
    "voc-constraint": voc.CONSTRAINT,
    "scores": scores.FIGURE,
}
"""All that `quadmatch reproduce` knows, by name. A new one is a file beside this one and a line here."""
