"""The tables of README and documentation that quote records, drawn from the records."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from quadmatch.reproduce.outliers import KINDS
from quadmatch.reproduce.rows import PEERS, tell_network
from quadmatch.reproduce.scores import list_shares
from quadmatch.reproduce.tables import read_published

ROOT = Path(__file__).parents[2]
OURS = "ours (compact), after qc-DGM{}"
SMALL = {1: "₁", 2: "₂"}


def read(name: str) -> dict[str, Any]:
    """A record of `results`, `benchmarks/results` or a model's card, by its path without the ending."""
    return json.loads((ROOT / f"{name}.json").read_text(encoding="utf-8"))


def find_row_of(record: str, name: str) -> dict[str, Any]:
    """The first row of a benchmark whose name begins so."""
    return next(row for row in read(record)["rows"] if row["name"].startswith(name))


def find_bench(record: str, name: str, key: str = "ratio") -> float:
    return find_row_of(record, name)[key]


def draw(heading: Sequence[str], *lines: Sequence[str]) -> str:
    rows = [heading, ["---"] * len(heading), *lines]
    return "\n".join(f"|{'|'.join(row)}|" if set(row) == {"---"} else f"| {' | '.join(row)} |" for row in rows)


def find_score(number: int, kind: str = "", metric: str = "accuracy", common: bool = False) -> float:
    found = read(f"results/qcdgm{number}-voc-test{kind}")
    return found["mean_common" if common else "mean"][metric]


def find_mean(record: str, row: str) -> str:
    """As in `97.8 ± 0.1`: the mean over the seeds of a table's row."""
    found = read(f"results/{record}")["rows"][row]
    return f"{found['mean']['mean']:.1f} ± {found['std']['mean']:.1f}"


def find_published(table: str, row: str, without: Sequence[str] = ()) -> str:
    """The paper's mean, or that of its classes without some."""
    figures = read_published(table)[1][row]
    kept = [value for name, value in figures.items() if name not in (*without, "mean")]
    return f"{fmean(kept) if without else figures['mean']:.1f}"


RARE = ("diningtable", "sofa")


def draw_readme() -> str:
    names = [OURS.format(SMALL[number]) for number in (1, 2)]

    def quote(table: str, without: Sequence[str] = ()) -> str:
        return ", ".join(find_published(table, f"qc-DGM{number}", without) for number in (1, 2))

    def show(**options: Any) -> list[str]:
        return [f"{find_score(number, **options):.1f}" for number in (1, 2)]

    bbgm = find_published("voc-accuracy-elsewhere", "BB-GM")
    return draw(
        ["in %, 1,000 pairs a class, test split", *names, "the paper's qc-DGM₁, qc-DGM₂", "BB-GM's"],
        [
            "Willow: accuracy, five seeds, 20 training images a class and nothing else",
            *(find_mean("willow-constraint", f"qc-DGM{number}") for number in (1, 2)),
            quote("willow-accuracy"),
            find_published("willow-accuracy", "BB-GM"),
        ],
        ["Pascal VOC: accuracy, the first models that shipped", *show(), quote("voc-accuracy"), bbgm],
        ["the same over the 18 classes with ten objects or more", *show(common=True), quote("voc-accuracy", RARE), ""],
        ["the same models used without the constraint", *show(kind="-unconstrained"), "", ""],
        [
            "F1 of all keypoints, all forced to match",
            *show(kind="-unfiltered", metric="f1"),
            quote("voc-f1"),
            find_published("voc-f1", "BB-GM-Max"),
        ],
    )


def draw_voc_test() -> str:
    lines = []
    for number in (1, 2):
        figures = [find_score(number, kind, common=common) for kind in ("", "-unconstrained") for common in (0, 1)]
        f1 = find_score(number, "-unfiltered", "f1")
        lines.append([OURS.format(SMALL[number]), *(f"{one:.2f}" for one in figures), f"{f1:.1f}"])
    for number in (1, 2):
        row = f"qc-DGM{number}"
        accuracy, common = (find_published("voc-accuracy", row, without) for without in ((), RARE))
        f1 = find_published("voc-f1", row)
        lines.append([f"the paper's qc-DGM{SMALL[number]}", accuracy, common, "", "", f1])
    elsewhere = [find_published("voc-accuracy-elsewhere", "BB-GM"), find_published("voc-f1", "BB-GM-Max")]
    lines.append(
        ["BB-GM", elsewhere[0], "", "", "", f"{elsewhere[1]} forced, {find_published('voc-f1', 'BB-GM')} free"]
    )
    heading = ["Pascal VOC, test split", "accuracy", "18 classes", "used without the constraint", "18 classes", "F1"]
    return draw(heading, *lines)


def draw_willow_constraint() -> str:
    lines = []
    for record, place in (("willow-constraint", ""), ("willow-constraint-box", ", in the frame of the box alone")):
        for number in (1, 2):
            row, level = f"qc-DGM{number}", ", level `local`, 300 steps" if place and number == 2 else ""
            figures = [find_mean(record, f"{row}{way}") for way in ("", ", trained without", ", only used without")]
            paper = "" if place else find_published("willow-accuracy", row)
            lines.append([OURS.format(SMALL[number]) + place + level, *figures, paper])
    heading = ["Willow, test, five seeds", "with the constraint", "trained without", "only used without", "the paper"]
    return draw(heading, *lines)


def draw_readings() -> str:
    rows = read("results/willow-readings")["rows"]
    ways = ("", ", our decoding", ", only used without")
    figures = [f"{rows['as printed' + way]['mean']['mean']:.1f}" for way in ways]
    heading = ["Willow, test, one seed", "with its own inference", "with our decoding", "used without the constraint"]
    return draw(heading, ["qc-DGM₁ as printed", *figures])


def draw_voc_constraint() -> str:
    chosen = [("voc-constraint", 1, '`unary = "logits"`, λ = .02, as shipped')]
    chosen += [("voc-constraint", 2, "the same")]
    chosen += [("voc-constraint-assignment", 2, '`unary = "assignment"`, λ = .1')]
    lines = []
    for record, number, words in chosen:
        ways = ("", ", only used without", ", trained without")
        figures = [find_mean(record, f"qc-DGM{number}{way}") for way in ways]
        lines.append([OURS.format(SMALL[number]) + ", " + words, *figures])
    heading = ["Pascal VOC, validation, 300 steps, two seeds", "with the constraint", "only used without"]
    return draw([*heading, "trained without"], *lines)


def draw_methods(record: str, title: str) -> str:
    """Every row of a table by its mean, beside the paper's; and how far from it."""
    return draw_rows(read(f"results/{record}")["rows"], title)


def draw_rows(rows: Mapping[str, dict[str, Any]], title: str) -> str:
    """Rows by their means, beside the paper's; and how far from it."""
    lines = []
    for name, row in rows.items():
        mean, paper = row["mean"]["mean"], row["paper"].get("mean")
        spread = "" if row["std"]["mean"] is None else f" ± {row['std']['mean']:.1f}"
        beside = ["", ""] if paper is None else [f"{paper:.1f}", f"{mean - paper:+.1f}"]
        lines.append([tell_network(name), f"{mean:.1f}{spread}", *beside])
    return draw([title, "here", "the paper", "difference"], *lines)


def draw_willow() -> str:
    """Willow with all image features and with half of them left out in training, beside the paper's."""
    plain, thinned = (read(f"results/{record}")["rows"] for record in ("willow-plain", "willow"))
    lines = []
    for name, row in plain.items():
        found = thinned.get(name) if name in PEERS else None  # The others leave none out.
        chosen, paper = (found or row)["mean"]["mean"], row["paper"].get("mean")
        beside = ["", ""] if paper is None else [f"{paper:.1f}", f"{chosen - paper:+.1f}"]
        figures = [f"{one['mean']['mean']:.1f}" if one else "" for one in (row, found)]
        spread = found["std"]["mean"] if found else None
        figures[1] += "" if spread is None else f" ± {spread:.1f}"
        lines.append([tell_network(name), *figures, *beside])
    heading = ["Willow, test, accuracy", "all image features, one seed", "half left out in training", "the paper"]
    return draw([*heading, "difference"], *lines)


def draw_willow_readings() -> str:
    """qc-DGM within the budget of the Willow table: as printed, as released and ours, and without the constraint.

    Rows that only an earlier record has are of one seed, and have no spread.
    """
    return draw_rows(find_qcdgm(), "Willow, test, 300 steps, accuracy")


def find_qcdgm() -> dict[str, Any]:
    """Every row of qc-DGM on Willow, by the record of more seeds where there is one."""
    before = read("results/willow-qcdgm")["rows"]
    rows = before | read("results/willow")["rows"]
    return {name: rows[name] for name in before}


def draw_validation() -> str:
    """How the strongest head went on: accuracy on the validation split at some steps of its second run."""
    first, second, *_ = (run["validation"] for run in read("results/beyond-training")["runs"])
    found = {one["step"]: one["accuracy"] for one in second}
    steps = [1000, 2000, 3000, 4000, 5000, 6000, 6500]
    heading = ["Pascal VOC, validation, 100 pairs a class", "end of the first run", *(f"{step:,}" for step in steps)]
    figures = [first[-1]["accuracy"], *(found[step] for step in steps)]
    return draw(heading, ["accuracy", *(f"{figure:.1f}" for figure in figures)])


def draw_outliers() -> str:
    """The strongest models that ship against the number of points that match nothing, with the constraint."""
    found = read("results/beyond-outliers")
    lines = [
        [f"`{one['method']}`, outliers {KINDS[one['kind']]}", *(f"{mean:.1f}" for mean in one["mean"])]
        for one in found["curves"]
        if one["constraint"]
    ]
    return draw(["Pascal VOC, validation, 50 pairs a class; outliers", *map(str, found["outliers"])], *lines)


def draw_gains_with_outliers() -> str:
    """What the constraint adds to the accuracy of the paper's three methods, by the number of outliers."""
    found = read("results/outliers")
    curves = {(one["data set"], one["kind"], one["method"], one["constraint"]): one["mean"] for one in found["curves"]}
    lines = []
    for (place, kind, method, constraint), means in curves.items():
        if constraint:
            gains = (more - less for more, less in zip(means, curves[place, kind, method, False]))
            lines.append([f"{place}, {KINDS[kind]}, qc-{tell_network(method)}", *(f"{gain:+.1f}" for gain in gains)])
    return draw(["points gained by the constraint; outliers in each graph", *map(str, found["outliers"])], *lines)


def draw_hardened() -> str:
    """The strongest head before and after a training with outliers, on the same pairs."""
    shown = {"clean": "accuracy", "uniform": "accuracy", "partial": "f1", "forced": "f1"}
    rows = read("results/outlier-training")["rows"]
    lines = [[name, *(f"{row[key]['mean'][kind]:.1f}" for key, kind in shown.items())] for name, row in rows.items()]
    heading = ["accuracy", "with ten outliers anywhere", "F1 of all keypoints, partial", "F1 of all keypoints, forced"]
    return draw(["Pascal VOC, validation, 100 pairs a class", *heading], *lines)


SEEN = {
    "warps 1.5": "warps of strength 1.5",
    "warps 2": "of strength 2",
    "corner 40°": "corner turned by 40°",
    "corner 60°": "by 60°",
    "voc": "Pascal VOC",
    "voc, 10 outliers": "with ten outliers",
    "cars": "Willow's cars and motorbikes",
    "cars, 10 outliers": "with ten outliers",
}
PLACES = {
    "corner 60°": "corner turned by 60°",
    **{key: SEEN[key] for key in ("voc", "voc, 10 outliers", "cars", "cars, 10 outliers")},
    "dense cars": "dense",
    "dense cars, 10 outliers": "with ten outliers",
}
SCATTERED = {
    "warps 1.5": "warps of strength 1.5",
    "warps 2": "warps of strength 2",
    "corner 40°": "corner turned by 40°",
    "corner 60°": "corner turned by 60°",
    "voc": "Pascal VOC",
    "cars": "Willow's cars and motorbikes",
    "dense cars": "the same, with points half-way between their keypoints",
}


def draw_views() -> str:
    """The strongest head before and after it was trained on views, and the default model, on the same pairs."""
    found = read("results/views-training")
    rows = {
        "network alone, before": found["before"]["rows"]["trained half alone"],
        "network alone, after": found["after"]["rows"]["trained half alone"],
        "`default`, after": found["after"]["rows"]["as it is"],
    }
    lines = [[name, *(f"{row[key]:.1f}" for key in SEEN)] for name, row in rows.items()]
    return draw(["% right, no test pictures", *SEEN.values()], *lines)


def draw_places() -> str:
    """The strongest head with more places in training, and the mean of networks, on the same pairs."""
    found = read("results/places-training")["rows"]
    lines = [[name, *(f"{row[key]:.1f}" for key in PLACES)] for name, row in found.items()]
    return draw(["% right, no test pictures", *PLACES.values()], *lines)


def draw_together() -> str:
    """Each network alone and with a mirror, and all of them together, on the same pairs."""
    plain, hard = (read(f"results/{name}")["rows"] for name in ("together", "together-outliers"))
    lines = [[tell_way(name), f"{row['accuracy']:.1f}", f"{hard[name]['accuracy']:.1f}"] for name, row in plain.items()]
    return draw(["Pascal VOC, validation, 100 pairs a class", "accuracy", "with ten outliers anywhere"], *lines)


def tell_way(name: str) -> str:
    """How a row of `benchmarks/together.py` is told in a table."""
    model, comma, rest = name.partition(",")
    return f"`{model.partition('-seed')[0]}`{comma}{rest}" if model != "all" else f"all of them{comma}{rest}"


def draw_models_anew() -> str:
    """The models that shipped first and those that ship now: filtered keypoints, and all of them."""
    lines = []
    for name, row in read("results/models-anew")["rows"].items():
        f1 = (f"{row[way]['mean']['f1']:.1f}" for way in ("forced", "partial"))
        lines.append([name, f"{row['filtered']['mean']['accuracy']:.1f}", *f1])
    return draw(["Pascal VOC, validation", "accuracy", "F1 of all keypoints, forced", "F1, partial"], *lines)


def draw_losses_tried() -> str:
    """qc-DGM₁ after a short training with each of three losses."""
    lines = []
    for name, row in read("results/qcdgm1-losses")["rows"].items():
        found = row["filtered"]["mean"]["accuracy"], row["forced"]["mean"]["f1"]
        lines.append([f"`{name}`", *(f"{one:.1f}" for one in found)])
    return draw(["Pascal VOC, validation, 300 steps", "accuracy", "F1 of all keypoints, forced"], *lines)


def draw_halves() -> str:
    """Willow's training pictures in two halves, of which one is trained on and the other tested."""
    lines = []
    for row in read("results/willow-halves")["rows"]:
        shown = row["plain"], row["local_maps"]["0.05"], row["references"], row["references_local_maps"]
        lines.append([f"{row['network']}, half {row['half']}", *(f"{one['mean']:.1f}" for one in shown)])
    heading = ["without local maps", "with local maps", "with references", "with both"]
    return draw(["Willow, trained on half of the training pictures, tested on the others", *heading], *lines)


def draw_articulated() -> str:
    """The strongest head on Willow's folds, with parts of the objects turned in training and without."""
    rows = {
        "alone, 150 steps, no part turned": ("", "qc-attention"),
        "alone, 300 steps, parts turned": ("-articulation", "qc-attention"),
        "after Pascal VOC, 60 steps, no part turned": ("", "qc-attention after VOC, no part turned"),
        "after Pascal VOC, 60 steps, parts turned": ("", "qc-attention after VOC"),
    }
    lines = [[name, find_mean(f"willow-folds{record}", row)] for name, (record, row) in rows.items()]
    return draw(["Willow's training pictures, four folds", "accuracy"], *lines)


def draw_local_maps() -> str:
    """The default model before its local maps went by the square, and now, with points that match nothing."""
    lines = []
    for name, title in SCATTERED.items():
        before, now = (read(f"results/local-maps-{when}")["rows"]["as it is"] for when in ("before", "now"))
        pairs = [f"{row[key]:.1f}" for key in (name, f"{name}, 10 outliers") for row in (before, now)]
        lines.append([title, *pairs])
    return draw(["% right, no test pictures", "before", "now", "ten outliers, before", "ten outliers, now"], *lines)


def draw_unseen() -> str:
    """Categories of Pascal VOC by a network that never saw them, by one that did, and by none."""
    found = read("results/beyond-unseen")
    ways = list(found["means"])
    lines = [
        [name, *(f"{one[way]['accuracy']:.1f}" for way in ways)] for name, one in sorted(found["categories"].items())
    ]
    return draw(
        ["Pascal VOC, validation, accuracy", *ways], *lines, ["mean", *(f"{found['means'][way]:.1f}" for way in ways)]
    )


def draw_left_out() -> str:
    """Categories that were left out five at a time, under changes of the training."""
    rows = read("results/unseen-tried")["rows"]
    lines = []
    for name, row in rows.items():
        against = next(iter(row.get("against", {}).values()), None)
        beside = [""] * 4 if against is None else list_comparison(against)
        lines.append([name, f"{row['mean']:.1f}", *beside])
    heading = ["Pascal VOC, validation, categories never seen", "accuracy", "gain", "95 %", "p"]
    return draw([*heading, "classes gained"], *lines)


def draw_losses() -> str:
    """One network trained with three losses: the validation split beside the last batches."""
    runs = read("results/losses")["runs"]
    lines = [
        [name, *(f"{one[key]:.1f}" for key in ("batches", "last", "largest_gradient"))] for name, one in runs.items()
    ]
    return draw(["qc-DGM₁ on Pascal VOC, 300 steps", "last batches", "validation", "largest gradient"], *lines)


def list_comparison(one: Mapping[str, Any]) -> list[str]:
    """A gain, its interval, the chance of it, and in how many classes there is one."""
    chance = f"{one['p']:.3f}" if one["p"] >= 0.001 else "< 0.001"
    span = f"{one['low']:+.1f} to {one['high']:+.1f}"
    return [f"{one['gain']:+.1f}", span, chance, f"{one['better']} of {one['classes']}"]


def draw_compared(*records: str) -> str:
    """Rows with the constraint against those without on the same pairs."""
    lines = []
    for record in records:
        for name, one in read(f"results/{record}")["compared"].items():
            lines.append([f"{record}: {name}", *list_comparison(one)])
    return draw(["on the same pairs", "gain", "95 %", "p", "classes gained"], *lines)


def count_gains(first: dict[str, float], second: dict[str, float]) -> list[str]:
    """Mean gain of the first over the second, and in how many classes there is one."""
    gains = [first[name] - second[name] for name in first if name != "mean"]
    return [f"{fmean(gains):+.2f}", f"{sum(gain > 0 for gain in gains)} of {len(gains)}"]


def draw_gains() -> str:
    """What the constraint is worth to our networks, and in how many classes it gains."""
    lines = []
    for record, place in (("voc-constraint", "Pascal VOC, validation"), ("willow-constraint", "Willow, test")):
        rows = read(f"results/{record}")["rows"]
        for number in (1, 2):
            name = f"qc-DGM{number}"
            found = count_gains(rows[name]["mean"], rows[f"{name}, trained without"]["mean"])
            lines.append([f"{place}, qc-DGM{SMALL[number]} against the same trained without", *found])
    for number in (1, 2):
        pair = [read(f"results/qcdgm{number}-voc-test{kind}")["classes"] for kind in ("", "-unconstrained")]
        found = count_gains(*({name: one["accuracy"] for name, one in classes.items()} for classes in pair))
        lines.append([f"Pascal VOC, test, first shipped qc-DGM{SMALL[number]} against the same used without", *found])
    for table, place in (("voc-accuracy", "Pascal VOC"), ("willow-accuracy", "Willow")):
        published = read_published(table)[1]
        for name in ("GMN", "PCA"):
            found = count_gains(published[f"qc-{name}"], published[name])
            lines.append([f"the paper, {place}, qc-{name} against {name}", *found])
    return draw(["ours (compact), and the paper's", "gain in points", "classes gained"], *lines)


def draw_iterations() -> str:
    found = read("results/iterations")
    heading = ["Willow, accuracy after so many steps", *map(str, found["steps"]), "steps until at rest"]
    lines = [
        [name, *(f"{value:.1f}" for value in row["accuracy"]), f"{row['taken']:.1f}"]
        for name, row in found["rows"].items()
    ]
    return draw(heading, *lines)


def draw_throughput(record: str) -> str:
    """Training pairs a second of each head, and its share of qc-DGM₁'s."""
    rows = read(f"benchmarks/results/{record}")["rows"]
    lines = [[row["name"].rpartition(" ")[2], f"{row['ours']:.0f}", f"{row['ratio']:.2f}"] for row in rows]
    return draw(["head of the experiment", "pairs a second", "of qc-DGM₁'s"], *lines)


FORMS = {
    "float32,contiguous,1": "float32, contiguous",
    "float32,channels_last,1": "float32, channels last",
    "float32,winograd,1": "float32, Winograd's tiles",
    "bfloat16,1": "bfloat16, channels last",
    "int8,1": "int8",
    "torch.compile, frozen": "torch.compile with freezing, float32",
    "ONNX Runtime": "ONNX Runtime, float32",
    "OpenVINO": "OpenVINO, float32",
}


def draw_forms(record: str) -> str:
    """Speed of each form of the convolutions, and the accuracy that was measured with it."""
    rows = {row["name"].removeprefix("convolutions, "): row for row in read(record)["rows"]}
    lines = []
    for name, words in FORMS.items():
        row = next(row for start, row in rows.items() if start.startswith(f"{name}, processor"))
        share = f"{100 * row['share_of_own_product']:.0f} %"
        right = f"{find_accuracy(MEASURED[name]):.2f}" if name in MEASURED else ""
        lines.append([words, f"{row['pictures_a_second']:.2f}", f"{row['ratio']:.2f}", share, right])
    heading = ["form", "pictures a second", "beside channels last", "of a matrix product in its format", "accuracy"]
    return draw(heading, *lines)


MEASURED = {
    "float32,channels_last,1": "float32",
    "float32,winograd,1": "winograd",
    "bfloat16,1": "bfloat16",
    "int8,1": "int8",
}


def find_accuracy(form: str) -> float:
    """On Pascal VOC's validation split, with the convolutions in that form; all forms saw the same pairs."""
    found = read(f"results/qcattention-voc-validation-{form}")
    assert (found["pairs"], found["pairs_hash"]) == (100, "fe29ad894f9b2c6e")
    assert not found["commit"].endswith("+changes")
    return found["mean"]["accuracy"]


SCENES = {
    "photo warps, strength 1": "same thing: 16 pairs of warped photographs, strength 1 (281 points)",
    "photo warps, strength 1.5": "strength 1.5 (275 points)",
    "photo warps, strength 2": "strength 2 (259 points: turned by up to 57°, much bent)",
    "corner of a house, turned by 20°": "the corner of a house, 12 pairs of views turned by 20° (354 points)",
    "corner of a house, turned by 40°": "turned by 40°",
    "corner of a house, turned by 60°": "turned by 60° (a wall almost from the side)",
}


PHOTOGRAPHS = "benchmarks/results/2026-11-20T015313"
"""Of `bench images --only photographs`. Whoever records anew changes this, and tests say what the pages must say."""


def draw_photographs() -> str:
    """Each cell has the accuracy with the constraint and without it."""
    rows = {row["name"]: row for row in read(PHOTOGRAPHS)["rows"]}
    heading = ["accuracy in %, with the constraint / without", "`default`", "`qcattention-voc`", "`vgg16`", "SIFT"]
    whole = read("results/default-voc-validation")["mean"]["accuracy"]
    trained = read("results/qcattention-voc-validation")["mean"]["accuracy"]
    kind = "same kind: Pascal VOC validation, intersection, 100 pairs a class (list `fe29ad894f9b2c6e`)"
    lines = [[kind, f"{whole:.1f}", f"{trained:.1f}", "", ""]]
    for name, words in SCENES.items():
        found = [
            rows[f"{name}, model {model}: % right beside SIFT"] for model in ("default", "qcattention-voc", "vgg16")
        ]
        cells = [f"{one['ours']:.1f} / {one['without_the_constraint']:.1f}" for one in found]
        lines.append([words, *cells, f"{found[0]['peer']:.1f}"])
    return draw(heading, *lines)


def draw_growth(record: str, key: str, scale: float) -> str:
    """How time or memory of each solver grows with the number of nodes."""
    rows = read(f"benchmarks/results/{record}")["rows"]
    sizes = list(dict.fromkeys(row["size"] for row in rows))
    names = list(dict.fromkeys(row["name"].removeprefix("scaling of ") for row in rows))
    found = {(row["name"].removeprefix("scaling of "), row["size"]): scale * row[key] for row in rows}
    lines = [[f"`{name}`", *(show_short(found[name, size]) for size in sizes)] for name in names]
    return draw(["solver", *sizes], *lines)


def show_short(value: float) -> str:
    """Three digits, and all before the point."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def draw_scores() -> str:
    """Percent right in each range of scores and, in brackets, the number of pairs."""
    counts = {use: [tuple(cell) for cell in cells] for use, cells in read("results/scores")["counts"].items()}
    heading, *lines = list_shares(counts)
    return draw(["score", "same kind, all points matched", *heading[2:]], *lines)


def draw_transfer() -> str:
    """Landmarks within a tenth of the longer side, by `transfer` and by `match --detect`."""
    record = read("results/transfer")
    heading = [
        "in %, default model",
        "`transfer`",
        f"`match --detect {record['corners']}`",
        "median distance",
        "called sure",
        "right of these",
    ]
    words = {
        "photo warps, strength 1": "the same thing, bent (strength 1)",
        "photo warps, strength 2": "the same thing, much bent and turned (strength 2)",
        "VOC, all classes": "two things of one kind (Pascal VOC validation)",
    }
    lines = []
    for kind, name in words.items():
        row = record["rows"][kind]
        cells = [f"{row['transfer_percent']:.1f}", f"{row['detect_percent']:.1f}"]
        cells += [f"{100 * row['transfer_median']:.1f}"]
        cells += [f"{100 * row['sure'] / row['landmarks']:.1f}", f"{row['sure_percent']:.1f}"]
        lines.append([f"{name}: {row['pairs']} pairs, {row['landmarks']} landmarks", *cells])
    return draw(heading, *lines)


def draw_few_points() -> str:
    """Few keypoints in one picture, many in the other."""
    heading = ["% right, default model", "crops around the points alone", "as `match` does it"]
    lines = []
    for counts, row in read("results/few-points")["rows"].items():
        cells = [f"{row['around_the_points']:.1f}", f"{row['both_tried']:.1f}"]
        lines.append([f"{counts} points: {row['pairs']} pairs, {row['warned']} of them with a warning", *cells])
    return draw(heading, *lines)


def draw_classes(kind: str, published: str, metric: str) -> str:
    """Page `results/voc-test.md` or `results/voc-test-f1.md`: class by class beside the paper's."""
    records = [read(f"results/qcdgm{number}-voc-test{kind}") for number in (1, 2)]
    title, paper = read_published(published)
    heading, columns = ["class"], []
    for number, record in zip((1, 2), records):
        heading += [OURS.format(number), f"qc-DGM{number}, paper"]
        ours = {name: scores[metric] for name, scores in record["classes"].items()} | {"mean": record["mean"][metric]}
        columns += [ours, paper[f"qc-DGM{number}"]]
    lines = [[name, *(f"{one[name]:.1f}" for one in columns)] for name in (*sorted(records[0]["classes"]), "mean")]
    common = [
        value for column in columns for value in (fmean(v for k, v in column.items() if k not in (*RARE, "mean")),)
    ]
    lines.append([f"mean without {' and '.join(RARE)}", *(f"{one:.1f}" for one in common)])
    conditions = records[0]
    caption = (
        f"pascal-voc, split test, {conditions['protocol']}, {conditions['pairs']} pairs a class (list "
        f"{conditions['pairs_hash']}), one seed, commit {conditions['commit']}, {conditions['hardware']}, made apart"
        f" from development; records: qcdgm1-voc-test{kind}.json and qcdgm2-voc-test{kind}.json"
    )
    return f"# {title}\n\n{draw(heading, *lines)}\n\n{caption}\n"
