"""Figures of the page on time and memory, and of engines, drawn from the records."""

from __future__ import annotations

from collections.abc import Callable

from quoted_figures import find_accuracy, find_bench, read

# Whoever records anew changes these, and tests say what the pages must say.
FORMS = "benchmarks/results/2026-11-18T043959"
AGAIN = "benchmarks/results/2026-11-18T022419"
TOGETHER = "benchmarks/results/2026-11-18T052525"
PAIRS = "benchmarks/results/2026-11-18T043959"
BULK = "benchmarks/results/2026-11-18T031412"


def draw_bulk() -> str:
    ratio = find_bench(BULK, "match-many on Ray")
    return f"`{BULK}.md` two workers are {ratio:.2f} times as fast as one"


def find_form(form: str, key: str) -> float:
    """A figure of one form of the convolutions."""
    return find_bench(FORMS, f"convolutions, {form}, processor", key)


def draw_cost_of_pictures() -> str:
    """Ten million pictures at the rates of one thread."""
    slow, quick = (find_form(form, "pictures_a_second") for form in ("float32,channels_last,1", "int8,1"))
    hours = [1e7 / rate / 3600 for rate in (slow, quick)]
    return (
        f"Ten million at {slow:.2f} a second (float32) are some {round(hours[0], -1):,.0f} core hours, or"
        f" {hours[0] / 100:.0f} hours on a hundred cores; at {quick:.2f} a second (`int8`) {round(hours[1], -1):,.0f}."
    )


def find_pair(size: str) -> float:
    """Seconds of a pair from features, in a batch of that size and with so many keypoints."""
    rows = read(PAIRS)["rows"]
    seconds = next(row["ours"] for row in rows if row["name"].endswith("model default") and row["size"] == size)
    return seconds / int(size.split()[1].rstrip(","))


def draw_cost_of_pairs() -> str:
    """A billion pairs whose features are there."""
    many, few = (find_pair(size) for size in ("batch 32, 40 keypoints", "batch 64, 3 to 13 keypoints"))
    hours = [1e9 * seconds / 3600 for seconds in (many, few)]
    return (
        f"In a group of 32 a pair with 40 points takes {1000 * many:.0f} ms from features,"
        f" {round(hours[0], -2):,.0f} core hours for a billion pairs: {hours[0] / 100 / 24:.1f} days on a hundred"
        f" cores. Pairs with at most 13 points, as in Pascal VOC, take {1000 * few:.1f} ms: {round(hours[1], -2):,.0f}"
        " core hours."
    )


def draw_check_of_cost() -> str:
    """A whole list beside the sum of its parts."""
    row = read(BULK)["rows"][0]
    whole = row["seconds_of_the_engine_local"] / row["pictures_computed"]
    pictures = [1 / find_form(form, "pictures_a_second") for form in ("int8,1", "bfloat16,1")]
    parts = [one + find_pair("batch 32, 40 keypoints") for one in pictures]
    return (
        f"`{BULK}.md` has a whole list: 300 pairs of 300 pictures with 40 points took one thread {whole:.2f} seconds a"
        f" pair. One picture and one pair are {parts[0]:.2f} seconds in `int8` and {parts[1]:.2f} in bfloat16;"
        " starting, reading, cropping and writing are the rest."
    )


def draw_aim() -> str:
    """Whether convolutions are twice as fast without bfloat16, and what that costs."""
    ratio, rate, usual = (
        *(find_form("int8,1", key) for key in ("ratio", "pictures_a_second")),
        find_form("float32,channels_last,1", "pictures_a_second"),
    )
    lost = find_accuracy("float32") - find_accuracy("int8")
    met = {True: "reached", False: "missed"}
    tiles = find_form("float32,winograd,1", "ratio")
    return (
        f"`int8` does {ratio:.2f} times as many ({rate:.2f} against {usual:.2f}) and loses {lost:.2f} points"
        f" ({find_accuracy('float32'):.2f} in float32, {find_accuracy('int8'):.2f} in `int8`):"
        f" {met[ratio >= 2 and lost <= 0.2]}, on processors that multiply bytes (`vnni`). Elsewhere Winograd's tiles do"
        f" {tiles:.2f} times as many ({find_accuracy('winograd'):.2f}): {met[tiles >= 2]}."
    )


def draw_roofline() -> str:
    """What the processor can do, and how far the forms are from it."""
    rates = [find_form("int8,1", f"{number}_product_GFLOP_a_second") for number in ("float32", "bfloat16", "int8")]
    forms = ("float32,channels_last,1", "bfloat16,1", "int8,1")
    shares = [100 * find_form(form, "share_of_own_product") for form in forms]
    work = find_form("int8,1", "share_of_float32_product") * rates[0] / find_form("int8,1", "pictures_a_second")
    tiles = 100 * find_form("float32,winograd,1", "share_of_float32_product")
    return (
        f"a product of two matrices of 2,048 rows: {rates[0]:.0f} billion operations a second in float32,"
        f" {rates[1]:.0f} in bfloat16, {rates[2]:.0f} in int8. A picture takes {work:.1f} billion, so the roofline is"
        f" at {rates[0] / work:.1f}, {rates[1] / work:.1f} and {rates[2] / work:.1f} pictures a second. Convolutions"
        f" reach {shares[0]:.0f}, {shares[1]:.0f} and {shares[2]:.0f} % of it. Winograd's tiles are at {tiles:.0f} %"
        f" of the float32 roofline with a quarter of the multiplications: these run at {tiles / 4:.0f} % of it."
    )


def draw_together() -> str:
    """Training by several processes beside one."""
    alone, rank = (
        find_bench(TOGETHER, "training steps", f"processor_seconds_{whose}") for whose in ("alone", "of_a_rank")
    )
    rows = [row for row in read(TOGETHER)["rows"] if row["name"].startswith("training, largest difference")]
    assert all(row["same_bits_twice"] for row in rows)
    apart, moved = [f"{row['ours']:.0e}" for row in rows], rows[0]["largest_change_by_training"]
    met = {True: "met", False: "missed"}[all(row["met"] for row in rows)]
    return (
        f"Each of two processes spends {100 * rank / alone:.0f} % of the processor time of one on a step"
        f" (`{TOGETHER}.md`). After 20 steps of this wide network parameters of two and three processes are up to"
        f" {apart[0]} and {apart[1]} from those of one, while training moved some by {moved:.0e};"
        f" the benchmark's bound, which tests hold a small network to, is {rows[0]['required']:.0e}: {met}. As many"
        " processes give the same bits again."
    )


def draw_again() -> str:
    """Pictures that were sent before."""
    ratio = find_bench(AGAIN, "serve, a second match")
    return f"A second match of the same pictures is {ratio:.1f} times as quick as the first (`{AGAIN}.md`)"


def draw_reading() -> str:
    """Gigabytes a second that a hundred cores read."""
    rates = [100 * find_form(form, "pictures_a_second") for form in ("float32,channels_last,1", "int8,1")]
    return (
        f"A hundred cores convolve {rates[0]:.0f} pictures a second in float32 and {rates[1]:.0f} in `int8`: they read"
        f" {rates[0] * 2e6 / 1e9:.1f} or {rates[1] * 2e6 / 1e9:.1f} gigabytes a second from wherever they are."
    )


SENTENCES: list[Callable[[], str]] = [
    draw_together,
    draw_bulk,
    draw_again,
    draw_aim,
    draw_roofline,
    draw_cost_of_pictures,
    draw_cost_of_pairs,
    draw_check_of_cost,
    draw_reading,
]
