"""Figures that sentences of README and documentation quote, drawn from the records."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from statistics import fmean, stdev
from typing import Any

from quoted_costs import SENTENCES as COSTS
from quoted_costs import draw_bulk
from quoted_figures import (
    PHOTOGRAPHS,
    ROOT,
    SCENES,
    find_bench,
    find_mean,
    find_published,
    find_qcdgm,
    find_row_of,
    find_score,
    read,
)

from quadmatch.features.precision import WORTHWHILE
from quadmatch.reproduce.scores import EDGES, FEW
from quadmatch.reproduce.tables import read_published

BATCHES = "benchmarks/results/2026-11-16T143535"
LATER = "benchmarks/results/2026-11-16T144458"
SPEEDS = "benchmarks/results/2026-11-16T115026"
PAGES = "benchmarks/results/2026-11-18T022419"


def find_row(record: str, row: str) -> float:
    return read(f"results/{record}")["rows"][row]["mean"]["mean"]


def gain(record: str, number: int) -> list[float]:
    """What the constraint is worth to each seed, against the same seed trained without it."""
    rows = read(f"results/{record}")["rows"]
    pairs = zip(rows[f"qc-DGM{number}"]["seeds"], rows[f"qc-DGM{number}, trained without"]["seeds"])
    return [one["mean"] - other["mean"] for one, other in pairs]


def describe_gain(record: str, number: int) -> str:
    found = gain(record, number)
    return f"{fmean(found):.2f} ± {stdev(found):.2f}"


def lose(number: int) -> float:
    """What a shipped model loses on the test split when it is used without the constraint."""
    return find_score(number) - find_score(number, "-unconstrained")


def readings(way: str) -> float:
    return find_row("willow-readings", f"as printed{way}")


def validation(number: int, common: bool = False) -> float:
    """Of a model that ships."""
    return read(f"results/qcdgm{number}-voc-validation")["mean_common" if common else "mean"]["accuracy"]


def find_anew(number: int, words: str = "", part: str = "filtered", metric: str = "accuracy") -> float:
    """Of a model that ships now, or of the `, first` one of its name."""
    return read("results/models-anew")["rows"][f"qcdgm{number}-voc{words}"][part]["mean"][metric]


def draw_anew() -> str:
    """What training the models anew changed, on the validation split."""
    kinds = ("filtered", "accuracy"), ("forced", "f1")
    first, now = (
        [[find_anew(number, words, *kind) for number in (1, 2)] for kind in kinds] for words in (", first", "")
    )
    return (
        "On the *validation* split the first ones have {:.1f} and {:.1f}, the present ones {:.1f} and {:.1f};"
        " F1 of all keypoints, all forced to match, was {:.1f} and {:.1f} and is {:.1f} and {:.1f} now."
    ).format(*first[0], *now[0], *first[1], *now[1])


def head(number: int, record: str = BATCHES) -> str:
    return f"{find_bench(record, f'step of the head of qcdgm{number}_voc, batch 32'):.2f}"


def worth(number: int) -> float:
    """Trained with the constraint against trained without it, on Pascal VOC's validation split."""
    row = f"qc-DGM{number}"
    return find_row("voc-constraint", row) - find_row("voc-constraint", f"{row}, trained without")


def draw_gains() -> str:
    gains = [f"{describe_gain('willow-constraint', number)}" for number in (1, 2)]
    box = [fmean(gain("willow-constraint-box", number)) for number in (1, 2)]
    better = sum(one > 0 for number in (1, 2) for one in gain("willow-constraint", number))
    often = {9: "nine", 10: "ten"}[better]
    return (
        f"the constraint gains {gains[0]} (qc-DGM₁) and {gains[1]} points (qc-DGM₂), in {often} of ten seeds. In the"
        f" frame of the box alone it gained {box[0]:.2f} and {box[1]:.2f}."
    )


def draw_pretrained() -> str:
    plain = [find_row("willow-constraint", "qc-DGM1"), find_row("willow-constraint-box", "qc-DGM2")]
    after = [find_row("willow-pretrained", f"qc-DGM{number} after VOC") for number in (1, 2)]
    return (
        f"qc-DGM₁ {after[0]:.1f}, as without it ({plain[0]:.1f}); qc-DGM₂, which has the frame of the box alone there,"
        f" {after[1]:.1f} ({plain[1]:.1f} in that frame without pre-training)."
    )


def draw_speeds() -> str:
    rows = [find_row_of(SPEEDS, f"images a second at level {level}") for level in ("local", "full")]
    (local, first), (full, second) = ((row["ours"], 100 * row["convolution_share"]) for row in rows)
    rate, share = (rows[0][f"extracted_once_{key}"] for key in ("images_a_second", "convolution_share"))
    return (
        f"`local` trains on {local:.0f} images a second and spends {first:.0f} % of the time in convolutions. `full`"
        f" trains on {full:.1f} images a second ({second:.0f} %). Extracting, which is done once, does {rate:.1f}"
        f" images a second ({100 * share:.0f} %)."
    )


def draw_batches() -> str:
    return (
        f"{head(1)} and {head(2)} times as long as one of 8 for the heads of the shipped models, where 3 was asked:"
        f" missed; in a run ten minutes later {head(1, LATER)} and {head(2, LATER)}"
    )


def draw_distinct() -> str:
    found = read("results/qcdgm1-willow-distinct")
    rows = read("results/willow-constraint")["rows"]["qc-DGM1"]["mean"]
    return (
        f"has {found['classes']['Car']['accuracy']:.1f} on cars and {found['mean']['accuracy']:.1f} on all classes"
        f" (seed 0, trained at commit b6018d5, `results/qcdgm1-willow-distinct.json`); with them five seeds have"
        f" {rows['Car']:.1f} and {rows['mean']:.1f}"
    )


TIMES = "benchmarks/results/2026-11-18T062016"
"""Of a first and a second match. Whoever records anew changes this, and the page says the rest."""


def draw_times() -> str:
    record = read(TIMES)
    date, hardware = (record["origin"][key] for key in ("date", "hardware"))
    return f"default model of {date[:10]}. They are of the record `{TIMES}.md` ({hardware})."


def draw_seconds(name: str, words: str) -> str:
    return f"| {words} | {find_bench(TIMES, name, 'ours_seconds'):.2f};"


def draw_met() -> str:
    """Whether both are within their bounds."""
    met = [find_bench(TIMES, name, "met") for name in (FIRST, SECOND)]
    return f"Their bounds are 3 and 0.5 seconds: {MET[tuple(met)]}."


FIRST, SECOND = "match two photographs, from", "match two more photographs"
MET = {
    (False, False): "both were missed",
    (True, False): "the second was missed",
    (False, True): "the first was missed",
    (True, True): "both were met",
}


def draw_strongest() -> str:
    ours, before = (find_row("beyond", row) for row in ("qc-attention as shipped", "qcdgm2-voc as shipped"))
    return f"It has {ours:.1f} on Pascal VOC's *validation* split, where the compact qc-DGM₂ has {before:.1f}."


INFERENCE = "2026-11-19T062801"


def draw_inference() -> str:
    rows = read(f"benchmarks/results/{INFERENCE}")["rows"]
    head, batch, *whole = (f"{1000 * row['ours']:.0f}" for row in rows)
    met = MET[rows[0]["ours"] <= 0.01, rows[1]["ours"] <= 0.15]
    return (
        f"takes `qcattention-voc` {head} ms (10 were asked) and a batch of 64 pairs {batch} ms (150 were asked): {met}"
        f" (`benchmarks/results/{INFERENCE}.md`, `quadmatch bench images --only inference`)."
        f" `default` takes {whole[0]} ms and {whole[1]} ms."
    )


def draw_other_means() -> str:
    record = read("results/qcattention-voc-validation-1000")
    return (
        f"The mean over pairs is {record['mean']['accuracy_pairs']:.1f}; without dining tables and sofas, of which"
        f" validation has too few, the mean over classes is {record['mean_common']['accuracy']:.1f}."
    )


def find_warps(strength: int, model: str = "default") -> tuple[float, float]:
    """Percent of the points of warped photographs that a model has right, and without the constraint."""
    name = f"photo warps, strength {strength}, model {model}"
    ours, without = (find_bench(PHOTOGRAPHS, name, key) for key in ("ours", "without_the_constraint"))
    return ours, without


def draw_notebook() -> str:
    shares = (*find_warps(2), *find_warps(1))
    return (
        "{:.1f} % of the points are right with the constraint and {:.1f} % without it (`quadmatch demo`);"
        " at strength 1 it is {:.1f} and {:.1f} %."
    ).format(*shares)


def draw_transferred() -> str:
    bent, kind = (read("results/transfer")["rows"][row] for row in ("photo warps, strength 1", "VOC, all classes"))
    shares = [f"{row[f'{way}_percent']:.0f} %" for row in (bent, kind) for way in ("transfer", "detect")]
    return (
        f"On two bent views of one photograph {shares[0]} of the landmarks come within a tenth of the picture's side"
        f" (`match --detect 60`: {shares[1]}), on two things of one kind {shares[2]} ({shares[3]})."
    )


def draw_pages() -> str:
    ratios = [
        find_bench(PAGES, f"processor seconds of a picture, {form}") for form in ("float32,channels_last", "int8,chan")
    ]
    return f"a picture costs {ratios[0]:.2f} times the processor time in float32 and {ratios[1]:.2f} times in int8"


DEMO = (
    "Over all 16 pairs of the demo {1:.0f} % of the points are right without the constraint and {0:.0f} % with it. The"
    " default model, which is trained, has {2:.0f} %."
)


WORTH = "On Pascal VOC the constraint is worth {:.1f} points to the first qc-DGM₁ that shipped and {:.2f} to qc-DGM₂."


def draw_mutants() -> str:
    record = read("results/mutants")
    found = [one for one in record["mutants"] if "equivalent" not in one]
    verdicts = [one["verdict"] for one in found]
    left, same = verdicts.count("survived"), len(record["mutants"]) - len(found)
    assert (len(record["mutants"]), same, left) == tuple(record[key] for key in ("tried", "equivalent", "survived"))
    assert verdicts.count("too slow") == record["too_slow"] == 0
    return (
        f"Of {record['tried']} mutants tried so far, {same} change nothing that a caller can see, each with its reason"
        f" in the record; of the other {len(found)}, {left or 'none'} survive{'s' * (left == 1)}"
        f" ({100 * left / len(found):.1f} %)."
    )


def draw_sample() -> str:
    """How many mutants each part of the package has had."""
    names = [one["mutant"] for one in read("results/mutants")["mutants"]]
    counts = [sum(name.startswith(part) for name in names) for part in MUTATED]
    assert sum(counts) == len(names)
    return f"Each of the {len(counts)} parts has had at least {min(counts)}, the search {counts[0]}."


def draw_fresh_sample() -> str:
    """What became of a second sample of mutants, at first and with the tests that were added."""
    record = read("results/mutants-fresh")
    same = {one["mutant"] for one in record["mutants"] if "equivalent" in one}
    first = [one for one in record["survived_at_first"] if one not in same and "references.py" not in one]
    assert (record["survived"], record["too_slow"]) == (0, 1)
    others = record["tried"] - len(same) - record["too_slow"]
    return (
        f"Of {record['tried']} mutants of a fresh sample, {len(same)} change nothing that a caller can see and one made"
        f" its tests run out of processor time. Of the other {others}, {len(first)} survived at first"
        f" ({100 * len(first) / others:.0f} %), and none survive with the tests that were added"
    )


MUTATED = (
    "solvers/search",
    "solvers/quadratic",
    "solvers/linear",
    "solvers/lawler",
    "layers",
    "losses.py",
    "decode.py",
    "datasets/protocols.py",
    "evaluation",
)
"""The parts that `benchmarks/mutate.py` changes."""


def draw_fuzzing() -> str:
    """What the fuzzers did with a larger budget."""
    record = read("results/fuzzing")
    assert not any(one["failed"] for one in record["files"].values())
    paths = ("tests/solvers/search/test_ends.py", "tests/solvers/quadratic/test_range.py")
    seconds = [record["files"][path]["processor_seconds"] for path in paths]
    return (
        f"On {record['date'][:10]} the tests of the search and of the soft solvers passed with"
        f" `QUADMATCH_FUZZ_CALLS={record['calls']}`, in {seconds[0]:.0f} and {seconds[1]:.0f} seconds of processor time"
        " (`results/fuzzing.json`)."
    )


def draw_loaded() -> str:
    """What became of the whole suite beside other processes."""
    record = read("results/loaded-suite")
    runs = record["runs"]
    assert not any(run["failed"] for run in runs)
    number = {3: "three", 4: "four", 5: "five"}[len(runs)]
    times = [run["minutes_of_tests"] for run in runs]
    return (
        f"On {record['date']} the whole suite passed {number} times of {number} beside two and more processes that kept"
        f" both cores busy, in {min(times):.0f} to {max(times):.0f} minutes (`results/loaded-suite.json`)."
    )


def draw_longer() -> str:
    """What three times the steps give the two rows of Willow that are lowest beside the paper's."""
    rows = read("results/willow-longer")["rows"]
    gaps = [row["paper"]["mean"] - row["mean"]["mean"] for row in rows.values()]
    assert max(gaps) < 2
    found = [f"{name} {row['mean']['mean']:.1f} ({row['paper']['mean']:.1f})" for name, row in rows.items()]
    return f"within 900 steps, one seed, they have {' and '.join(found)}, less than two points below"


def draw_false_matching() -> str:
    """How PCA fares under two losses within three times the steps of the reduced budget."""
    record = read("results/voc-longer")
    plain, false = (record["rows"][name]["mean"]["mean"] for name in ("PCA", "PCA-F"))
    norms = [step["gradient_norm"] for step in record["training"]["PCA-F"]]
    others = max(step["gradient_norm"] for step in record["training"]["PCA"])
    assert norms[0] < 1 < max(norms)
    return (
        f"Within 450 steps PCA has {plain:.1f} and PCA-F {false:.1f}, less than within 150: the norm of its gradient"
        f" grows from {norms[0]:.1f} to {max(norms):.0f}, where cross-entropy's stays below {math.ceil(others)}"
    )


def draw_folds() -> str:
    """Accuracy on held-out training pictures of Willow, as settings are chosen."""
    rows = read("results/willow-folds")["rows"]
    assert all(len(row["seeds"]) == 4 for row in rows.values())
    one, two = (find_mean("willow-folds", name) for name in ("qc-DGM1", "qc-DGM2"))
    least = [min(seed["mean"] for seed in row["seeds"]) for row in rows.values()]
    return (
        f"qc-DGM₁ has {one} and qc-DGM₂ {two} over four folds (`results/willow-folds.json`). In one fold they have"
        f" {least[0]:.1f} and {least[1]:.1f}"
    )


def find_shares(use: str, low: float, high: float) -> str:
    """As in `44 to 64 %`: how many pairs were right in the ranges of scores between two, where there are enough."""
    counts = next(cells for name, cells in read("results/scores")["counts"].items() if name.startswith(use))
    found = [
        100 * right / pairs
        for (begin, end), (pairs, right) in zip(pairwise(EDGES), counts)
        if low <= begin and end <= high and pairs >= FEW
    ]
    return f"{min(found):.0f} to {max(found):.0f} %"


def draw_trusted() -> str:
    return f"- **0.7 and more** is mostly right: {find_shares('same kind', 0.7, 1.0)} of the keypoints"


def draw_doubted() -> str:
    return f"{find_shares('same kind', 0.4, 0.7)} of such keypoints are right."


def find_photographs(model: str, start: str) -> list[dict[str, Any]]:
    """Rows of a model on the scenes whose name begins so."""
    return [find_row_of(PHOTOGRAPHS, f"{name}, model {model}") for name in SCENES if name.startswith(start)]


def draw_loss_of_one_use() -> str:
    warps = zip(*(find_photographs(model, "photo warps") for model in ("default", "qcattention-voc")))
    lost = [whole["ours"] - trained["ours"] for whole, trained in warps]
    kind = [read(f"results/{name}-voc-validation")["mean"]["accuracy"] for name in ("qcattention", "default")]
    pairs = [find_photographs(model, "") for model in ("default", "qcattention-voc", "vgg16")]
    assert all(whole["ours"] >= max(one["ours"], other["ours"]) for whole, one, other in zip(*pairs))
    return (
        f"On warps the trained model loses {min(lost):.0f} to {max(lost):.0f} points. The `default` model loses"
        f" {kind[0] - kind[1]:.1f} points on Pascal VOC against its trained half, and nothing against the better of the"
        " two on photographs."
    )


def draw_worth_on_photographs() -> str:
    gains = [
        max(row["ours"] - row["without_the_constraint"] for row in find_photographs("vgg16", start))
        for start in ("photo warps", "corner")
    ]
    return f"in `vgg16` up to {gains[0]:.0f} points (warps) and {gains[1]:.0f} (the house)."


def draw_found_again() -> str:
    row = find_row_of(TIMES, "detected keypoints")
    return (
        f"of 40 such points {row['ours']:.0f} % come back within 3 pixels in another view; of SIFT's keypoints, spread"
        f" in the same way, {row['peer']:.0f} %; of random places {row['random_places']:.0f} %."
    )


def draw_formats() -> str:
    found = [read(f"results/qcattention-voc-validation-{kind}")["mean"]["accuracy"] for kind in ("int8", "float32")]
    return "Its accuracy is {:.1f}, and {:.1f} in float32.".format(*found)


def find_ducks(record: str, row: str) -> float:
    return read(f"results/{record}")["rows"][row]["mean"]["Duck"]


def draw_aim() -> str:
    """What was asked of Willow, and what each way of training and using the head has."""
    asked, rows = 99.1, read("results/beyond-willow")["rows"]
    ways = {"alone": "", "alone with references": ", with references", "after Pascal VOC": " after VOC"}
    ways["after Pascal VOC with references"] = " after VOC, with references"
    found = {way: rows[f"qc-attention{ending}"]["mean"]["mean"] for way, ending in ways.items()}
    told = [f"{way} it is {'met' if value >= asked else 'missed'} ({value:.2f})" for way, value in found.items()]
    return f"{asked} was asked: {', '.join(told)}."


def draw_ducks() -> str:
    plain, maps = (find_ducks("beyond-willow", f"qc-attention{ending}") for ending in (", without local maps", ""))
    return f"Ducks, the hardest class, have {maps:.1f} with local maps and {plain:.1f} without."


def draw_doubts() -> str:
    """The mean over the trained networks of the halves, for every doubt that was tried."""
    rows = [row["local_maps"] for row in read("results/willow-halves")["rows"][1:]]
    means = {doubt: fmean(row[doubt]["mean"] for row in rows) for doubt in rows[0]}
    return (
        "the three trained networks have " + ", ".join(f"{mean:.1f} at {doubt}" for doubt, mean in means.items()) + "."
    )


def draw_runs() -> str:
    *before, last = read("results/beyond-training")["minutes"]
    return f"There are five runs, of {', '.join(map(str, before))} and {last} minutes."


def draw_chosen_step() -> str:
    """Which checkpoint of the run with views is used, and what the run's end would have been."""
    *_, views, places = read("results/beyond-training")["runs"]
    best, last = max(views["validation"], key=lambda one: one["accuracy"]), views["validation"][-1]
    # What ships is the mean of two networks, of which one was the end of the last run.
    assert read("src/quadmatch/models/qcattention-voc")["start_sha256"].split()[1] == places["parameters_sha256"]
    return (
        f"Its step {best['step']:,} is used, which has {best['accuracy']:.1f} on the validation split; at its"
        f" end, step {last['step']:,}, it has {last['accuracy']:.1f}."
    )


def draw_loss_by_outliers() -> str:
    """What ten outliers anywhere cost the strongest head and qc-DGM₂, and whether that is at most half."""
    curves = read("results/beyond-outliers")["curves"]
    chosen = {one["method"]: one["mean"] for one in curves if one["constraint"] and one["kind"] == "uniform"}
    ours, other = (chosen[name][0] - chosen[name][-1] for name in ("qcattention-voc", "qcdgm2-voc"))
    met = "met" if ours <= other / 2 else "missed"
    return (
        f"With ten outliers anywhere in the picture `qcattention-voc` loses {ours:.1f} points and `qcdgm2-voc`"
        f" {other:.1f}. The aim was to lose at most half as much as `qcdgm2-voc`. It was {met}."
    )


def draw_longer_unseen() -> str:
    """What more steps are worth to categories that training never saw."""
    three, six = (
        read("results/unseen-tried")["rows"][f"{steps} steps"]["against"]["100 steps"] for steps in (300, 600)
    )
    return (
        f"Six times the steps gain {six['gain']:.1f} points** on categories that none of them saw, in"
        f" {six['better']} of {six['classes']} classes, and three times the steps {three['gain']:.1f}."
    )


def draw_outliers_seen() -> str:
    """The strongest head on pairs of its own training pictures, with outliers and without."""
    found = {
        (one["seed"], one["outliers"]): one["accuracy"] for one in read("results/qcattention-voc-train")["evaluations"]
    }
    assert all(found[seed, 0] - found[seed, 10] > 20 for seed in (0, 1))
    return (
        f"the network has {found[0, 0]:.1f}, and {found[0, 10]:.1f} with ten outliers that lie where training had some"
        " (`results/qcattention-voc-train.json`). With outliers elsewhere, on other pairs of these pictures, it has"
        f" {found[1, 0]:.1f} and {found[1, 10]:.1f}."
    )


def draw_longer_outliers() -> str:
    """That a longer training with outliers lost accuracy without them."""
    tried = read("results/outlier-training")["tried"][-1]["validation"]
    best = max(tried, key=lambda one: one["accuracy"])
    return (
        f"in a run of {tried[-1]['step']:,} steps at a higher rate accuracy without outliers was {best['accuracy']:.1f}"
        f" after {best['step']:,} steps and {tried[-1]['accuracy']:.1f} at the end."
    )


def find_minutes(number: int) -> str:
    """How long a shipped model was trained, by its card."""
    return f"{read(f'src/quadmatch/models/qcdgm{number}-voc')['trained']['seconds'] / 60:.0f} minutes"


def draw_worth_anew() -> str:
    """What the present models lose on the validation split when they are used without the constraint."""
    lost = [find_anew(number) - find_anew(number, part="unconstrained") for number in (1, 2)]
    return f"the constraint is worth {lost[0]:.2f} (qc-DGM₁) and {lost[1]:.2f} points (qc-DGM₂) to the present ones"


def draw_rest() -> str:
    """Steps until the discrete constraint is at rest, and what three of them leave."""
    rows = read("results/iterations")["rows"]
    steps = [rows[f"{name}, trained {way}"]["taken"] for way in ("with", "without") for name in ("PCA", "GMN")]
    three = read("results/iterations")["steps"].index(3)
    left = max(abs(row["accuracy"][three] - row["accuracy"][-1]) for row in rows.values())
    assert left <= 0.3
    return (
        "Networks trained with the constraint come to rest after {:.1f} and {:.1f} steps on average, those trained"
        " without after {:.1f} and {:.1f}. After three steps all are within 0.3 points of what thirty give."
    ).format(*steps)


def draw_corners() -> str:
    found = read("results/overview")
    alone = next(line for line in found["lines"] if line[0].startswith("scores"))[2]
    return f"scores alone match {alone} corners right; with the discrete constraint it is {found['right']}."


def draw_two_ways() -> str:
    found = read("results/two-ways-photographs")
    without, constrained = (sum(found["right"][f"{way} the constraint"]) for way in ("without", "with"))
    return f"over all {found['pairs']} it brings {without} right corners of 201 to {constrained}"


def draw_both_readings() -> str:
    """What the paper's own networks reach on Willow here, as released and as printed."""
    means = {name: row["mean"]["mean"] for name, row in find_qcdgm().items()}
    found = [
        means[f"qc-DGM{number}, {words}"]
        for words in ("as released", "as printed", "as printed, our decoding")
        for number in (1, 2)
    ]
    return (
        "have {:.1f} and {:.1f} on Willow as released, {:.1f} and {:.1f} as printed, and {:.1f} and {:.1f} as printed"
        " with our decoding."
    ).format(*found)


def draw_verdict() -> str:
    """What GMN and PCA gain by the constraint, and what the paper says."""
    found = {
        (name, record): read(f"results/{record}")["compared"][f"qc-{name} against {name}"]["gain"]
        for name in ("GMN", "PCA")
        for record in (SEEDED, "voc-reduced")
    }
    paper = [
        read_published(table)[1]["qc-GMN"]["mean"] - read_published(table)[1]["GMN"]["mean"]
        for table in ("willow-accuracy", "voc-accuracy")
    ]
    return (
        f"GMN gains {found['GMN', SEEDED]:.1f} points on Willow (three seeds; the paper: {paper[0]:.1f}) and"
        f" {found['GMN', 'voc-reduced']:.1f} on Pascal VOC (three seeds; the paper: {paper[1]:.1f}): as the paper says."
        f" PCA gains {found['PCA', SEEDED]:.1f} points on Willow (three seeds) and"
        f" {found['PCA', 'voc-reduced']:.1f} on Pascal VOC (three seeds): the reverse"
    )


SEEDED = "willow"
"""The record of the Willow table with three seeds."""


def draw_chance() -> str:
    one = read("results/voc-reduced")["compared"]["BB-GM (solver of our own) against qc-DGM1"]
    return f"the two cannot be told apart (p = {one['p']:.2f})."


def draw_failing_seeds() -> str:
    """What networks that are trained on false matching have in each seed of the reduced budget."""
    rows = read("results/voc-reduced")["rows"]
    first, second, third = (
        "{:.1f}, {:.1f} and {:.1f}".format(*(seed["mean"] for seed in rows[name]["seeds"]))
        for name in ("PCA-F", "qc-DGM1, as released", "qc-DGM1, as printed")
    )
    return f"PCA-F has {first} in its three seeds, and qc-DGM₁ as released {second}. qc-DGM₁ as printed has {third}."


def draw_published_gain() -> str:
    gain = float(find_published("willow-accuracy", "qc-PCA")) - float(find_published("willow-accuracy", "PCA"))
    return f"(nothing with all features), where the paper has {gain:.1f} points;"


def draw_full_step() -> str:
    return f"| {find_bench(SPEEDS, 'step at level local, beside full'):.0f} times a `local` step (`{SPEEDS}.md`) |"


def find_solvers() -> str:
    """The first record of `bench solvers` that page "Which solver?" is made of."""
    page = (ROOT / "docs" / "which-solver.md").read_text(encoding="utf-8")
    return f"benchmarks/results/{page.partition('From the records `')[2].partition('`')[0]}"


def draw_small_pairs() -> str:
    seconds = find_bench(find_solvers(), "match_graphs, one call", "ours_seconds")
    return f"one call; compiled loops, {1e6 * seconds / 512:.0f} µs a pair at 5 to 20 nodes"


def draw_large_pair() -> str:
    rows = [row for row in read(find_solvers())["rows"] if row["name"].startswith("match_graphs, Delaunay")]
    seconds = " and ".join(f"{row['seconds']:.1f}" for row in rows)
    return f"took {seconds} s and {max(row['peak_gigabytes'] for row in rows):.2f} GB (`{find_solvers()}.md`)."


def draw_cost_of_the_best() -> str:
    return f"about {find_bench(find_solvers(), 'QAPLIB, quality best: processor'):.0f} times"


def draw_worthwhile() -> str:
    return "bfloat16 must be {bfloat16} times faster to be chosen, int8 {int8} times.".format(**WORTHWHILE)


SENTENCES: dict[str, list[Callable[[], str]]] = {
    "README.md": [
        draw_trusted,
        draw_doubted,
        draw_transferred,
        draw_strongest,
        lambda: DEMO.format(*find_warps(2, "vgg16"), find_warps(2)[0]),
        draw_anew,
        lambda: WORTH.format(lose(1), lose(2)),
        lambda: (
            f"{readings(', our decoding'):.1f} with our decoding) it is worth {used():.1f}; with the printed inference"
        ),
        lambda: f"it loses {readings(', only used without') - readings(''):.0f}.",
        draw_both_readings,
    ],
    "docs/reliability.md": [draw_mutants, draw_sample, draw_fresh_sample, draw_fuzzing, draw_loaded],
    "docs/learned.md": [
        draw_folds,
        draw_gains,
        draw_pretrained,
        lambda: f"The hardest class are ducks ({find_ducks('willow-constraint', 'qc-DGM1'):.0f} %)",
        lambda: f"qc-DGM₂ {validation(2):.1f} after {find_minutes(2)}",
        lambda: f"qc-DGM₁ {validation(1):.1f} after {find_minutes(1)}",
        lambda: f"too few to say anything: {validation(2, True):.1f} and {validation(1, True):.1f}.",
        lambda: f"{find_row('voc-validation', 'nothing trained'):.1f} dot products alone, ",
        lambda: f"{find_row('voc-validation', 'constraint only'):.1f} with the discrete constraint",
        lambda: f"On test the first models have {find_score(2):.1f} and {find_score(1):.1f}",
        lambda: f"trained with the constraint is {worth(1):.1f} (qc-DGM₁) and {worth(2):.1f} points (qc-DGM₂) better",
    ],
    "docs/reproducing.md": [
        lambda: "by {:.1f} (qc-DGM₁) and {:.1f} points".format(
            *(find_anew(number, ", first") - find_score(number) for number in (1, 2))
        ),
        draw_anew,
        draw_worth_anew,
        lambda: f"the first models the constraint is worth {lose(1):.1f} (qc-DGM₁) and {lose(2):.2f} points (qc-DGM₂)",
        lambda: f"the constraint is worth {used():.1f} points in use, in ours {ours():.1f} (qc-DGM₁ on Willow",
        lambda: f"as printed has {readings(', our decoding') - readings(''):.0f} points less than our decoding",
        lambda: f"Willow test {find_row('willow-plain', 'nothing trained'):.1f} (list `39127e93c66d5742`",
        lambda: f"on the binary Delaunay graphs: {find_row('willow-plain', 'constraint only'):.1f}.",
    ],
    "docs/results.md": [
        lambda: "decided for the second, for all of them: {:.1f} against {:.1f}".format(*left_out()),
        draw_longer,
        draw_false_matching,
        draw_rest,
        draw_corners,
        draw_two_ways,
        draw_verdict,
        draw_chance,
        draw_failing_seeds,
        draw_published_gain,
    ],
    "docs/models.md": [
        lambda: f"the first `qcdgm2-voc` has {find_score(2):.1f} and the first `qcdgm1-voc` {find_score(1):.1f}",
        draw_loss_of_one_use,
        draw_worth_on_photographs,
    ],
    "docs/data.md": [draw_distinct],
    "docs/beyond.md": [
        draw_other_means,
        draw_inference,
        draw_aim,
        draw_ducks,
        draw_doubts,
        draw_runs,
        draw_chosen_step,
        draw_loss_by_outliers,
        draw_longer_outliers,
        draw_outliers_seen,
        draw_longer_unseen,
    ],
    "docs/many-machines.md": [draw_bulk],
    "docs/own-images.md": [
        draw_found_again,
        draw_times,
        draw_met,
        lambda: draw_seconds(
            FIRST, "two photographs of 1000 × 1000 pixels, 40 points each, from the start of the process"
        ),
        lambda: draw_seconds(SECOND, "two more in the same process"),
    ],
    "docs/notebooks/photographs.ipynb": [draw_notebook],
    "docs/features.md": [draw_speeds, draw_batches, draw_pages, draw_formats, draw_worthwhile],
    "docs/training.md": [draw_full_step],
    "docs/which-solver.md": [draw_small_pairs, draw_cost_of_the_best],
    "docs/quadratic-assignment.md": [draw_cost_of_the_best],
    "docs/own-graphs.md": [draw_large_pair],
    "docs/scaling.md": COSTS,
}


def used() -> float:
    return readings(", our decoding") - readings(", only used without")


def ours() -> float:
    return find_row("willow-constraint", "qc-DGM1") - find_row("willow-constraint", "qc-DGM1, only used without")


def left_out() -> list[float]:
    """PCA on held-out training pictures of Willow, half of the image features left out in training and none."""
    return [find_row("willow-left-out", f"PCA, {name}") for name in ("half of them left out", "all image features")]
