"""Tables of the paper: one command trains, evaluates and prints each beside the published figures."""

from __future__ import annotations

from typing import Any

from quadmatch.reproduce import voc, willow

TABLES: dict[str, dict[str, Any]] = {
    "willow": willow.TABLE,
    "willow-constraint": willow.CONSTRAINT,
    "willow-pretrained": willow.PRETRAINED,
    "voc": voc.TABLE,
    "voc-f1": voc.F1,
    "voc-constraint": voc.CONSTRAINT,
}
"""By name. A row is a model's name or an experiment with changes, and how it is used."""
