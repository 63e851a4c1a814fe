"""Each category is tested by a network that never saw it, beside one that did and beside nothing trained."""

from __future__ import annotations

from quadmatch.reproduce import unseen
from quadmatch.reproduce.items import Settings
from quadmatch.reproduce.reuse import read_row

ACCURACY = {"left out": 40.0, "trained on": 60.0, "nothing trained": 30.0}


def test_a_category_is_left_out_of_training_and_tested_alone(tmp_path, monkeypatch) -> None:
    asked = []

    def evaluate(row, seed, dataset, conditions, settings, options):
        asked.append((row, seed, dataset, conditions, options))
        way = "nothing trained" if row.model else "left out" if "without" in str(row.changes) else "trained on"
        name = options["only"][0]
        return {"mean": {"accuracy": ACCURACY[way] + (name == "cat")}, "pairs_hash": name, "commit": "c"}

    monkeypatch.setattr("quadmatch.reproduce.reuse.evaluate_row", evaluate)
    settings = Settings(tmp_path, rows=("car", "cat"), say=lambda line: None)
    made = unseen.make(settings)
    assert made.lines[1:] == [
        ["car", "40.0", "60.0", "30.0"],
        ["cat", "41.0", "61.0", "31.0"],
        ["mean", "40.5", "60.5", "30.5"],
    ]
    assert made.record["means"] == {"left out": 40.5, "trained on": 60.5, "nothing trained": 30.5}
    assert made.record["categories"]["cat"]["left out"]["pairs_hash"] == "cat"
    for row, seed, dataset, conditions, options in asked:
        assert dataset == "pascal-voc"
        assert (conditions.split, conditions.pairs) == ("validation", 100)
        # What the run itself left out must not be left out of its test.
        assert options["without"] == ()
        if row.model:
            assert (row.model, row.constraint, seed) == ("vgg16", True, None)
            continue
        experiment = read_row(row, seed, settings)
        assert (experiment.training.steps, experiment.head.method) == (100, "attention")
        left = experiment.data.options.get("without", ())
        assert left in ((), options["only"])


def test_all_twenty_categories_are_left_out_unless_some_are_chosen(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(unseen, "try_category", lambda name, settings: {way: {"accuracy": 1.0} for way in unseen.WAYS})
    lines = unseen.make(Settings(tmp_path, say=lambda line: None)).lines
    assert [line[0] for line in lines[1:]] == [*unseen.CATEGORIES, "mean"]
    assert len(set(unseen.CATEGORIES)) == 20
