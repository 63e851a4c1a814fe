"""Precision: measured, kept for the machine, and always overridable."""

import contextlib
import json
import threading

import pytest
import torch

from quadmatch.features import precision
from quadmatch.features.precision import Precision, choose_precision, parse_precision

REAL_THREADS = torch.get_num_threads


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("QUADMATCH_CACHE", str(tmp_path))
    monkeypatch.delenv(precision.VARIABLE, raising=False)
    monkeypatch.setattr(precision, "_is_busy", lambda: False)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    return tmp_path / precision.CACHED_NAME


class Machine:
    """Stands for a processor: seconds for each format on one thread, and how threads help."""

    def __init__(self, contiguous=1.0, channels_last=0.7, winograd=0.9, bfloat16=5.0, int8=5.0, best_threads=4):
        self.seconds = {"contiguous": contiguous, "channels_last": channels_last, "winograd": winograd}
        self.seconds |= {"bfloat16": bfloat16, "int8": int8}
        self.best_threads, self.asked = best_threads, []

    def __call__(self, candidate, patience):
        self.asked.append(str(candidate))
        seconds = self.seconds[candidate.memory if candidate.number == "float32" else candidate.number]
        helping = min(candidate.threads, self.best_threads)
        return seconds / helping * (1 + max(0, candidate.threads - self.best_threads))


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (Machine(), "float32,channels_last,4"),
        (Machine(channels_last=1.2, winograd=1.1), "float32,contiguous,4"),
        (Machine(winograd=0.4), "float32,winograd,4"),
        (Machine(winograd=0.4, bfloat16=0.35), "float32,winograd,4"),
        (Machine(winograd=0.4, bfloat16=0.3), "bfloat16,channels_last,4"),
        (Machine(bfloat16=0.25), "bfloat16,channels_last,4"),
        (Machine(bfloat16=0.65), "float32,channels_last,4"),  # A little faster is not worth the digits.
        (Machine(int8=0.4), "int8,channels_last,4"),
        (Machine(int8=0.5), "float32,channels_last,4"),
        (Machine(winograd=0.5, bfloat16=0.3, int8=0.25), "bfloat16,channels_last,4"),
        (Machine(winograd=0.5, bfloat16=0.3, int8=0.19), "int8,channels_last,4"),
        (Machine(best_threads=2), "float32,channels_last,2"),
        (Machine(bfloat16=0.2, best_threads=1), "bfloat16,channels_last,1"),
    ],
)
def test_fastest_is_chosen(machine, expected, monkeypatch):
    monkeypatch.setattr(precision, "can_multiply_bytes", lambda: True)
    assert str(choose_precision(measure=machine)) == expected


def test_bytes_are_not_tried_where_they_cannot_be_multiplied(monkeypatch):
    monkeypatch.setattr(precision, "can_multiply_bytes", lambda: False)
    machine = Machine(int8=0.1)
    assert str(choose_precision(measure=machine)) == "float32,channels_last,4"
    assert not any(one.startswith("int8") for one in machine.asked)


def test_choice_is_measured_once_a_machine(cache, monkeypatch):
    machine = Machine()
    first = choose_precision(measure=machine)
    asked = len(machine.asked)
    again = choose_precision(measure=machine)
    assert str(again) == str(first)
    assert len(machine.asked) == asked
    assert "measured: " in first.describe()
    assert "measured earlier: " in again.describe()
    assert "float32,contiguous,1 1.00×" in again.describe()
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)  # Another number of threads is another machine.
    assert choose_precision(measure=machine).threads == 2
    assert len(json.loads(cache.read_text())) == 2


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"MACHINE": 3}', '{"MACHINE": {"choice": "float99", "measured": ""}}']
)
def test_damaged_cache_is_measured_again(content, cache):
    cache.write_text(content.replace("MACHINE", precision.name_machine()))
    machine = Machine()
    assert str(choose_precision(measure=machine)) == "float32,channels_last,4"
    assert machine.asked
    assert "measured earlier" in choose_precision(measure=machine).describe()


def test_choice_of_a_busy_machine_holds_while_it_is_busy(cache, monkeypatch):
    monkeypatch.setattr(precision, "_is_busy", lambda: True)
    machine = Machine()
    assert "other programs" in choose_precision(measure=machine).describe()
    asked = len(machine.asked)
    assert "measured earlier" in choose_precision(measure=machine).describe()
    assert len(machine.asked) == asked
    monkeypatch.setattr(precision, "_is_busy", lambda: False)
    assert "measured earlier" not in choose_precision(measure=machine).describe()
    assert len(machine.asked) == 2 * asked
    assert "measured earlier" in choose_precision(measure=machine).describe()


def test_unwritable_cache_does_no_harm(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("QUADMATCH_CACHE", str(tmp_path / "file" / "cache"))
    assert str(choose_precision(measure=Machine())) == "float32,channels_last,4"


def test_argument_over_variable_over_measurement(monkeypatch):
    machine = Machine()
    monkeypatch.setenv(precision.VARIABLE, "bfloat16,1")
    assert str(choose_precision(measure=machine)) == "bfloat16,channels_last,1"
    assert precision.VARIABLE in choose_precision(measure=machine).describe()
    assert str(choose_precision("float32,contiguous", measure=machine)) == "float32,contiguous,4"
    given = Precision("float32", "contiguous", 3)
    assert choose_precision(given, measure=machine) is given
    assert not machine.asked
    monkeypatch.setenv(precision.VARIABLE, "auto")
    choose_precision(measure=machine)
    assert machine.asked


def test_text_is_read_back():
    for text in ("bfloat16,channels_last,2", "float32,contiguous,1", "float32,winograd,2", "int8,channels_last,2"):
        assert str(parse_precision(text)) == text
    for text in ("float16", "float32,0", "bfloat16;2", "", "bfloat16,winograd", "int8,winograd"):
        with pytest.raises(ValueError, match="precision"):
            parse_precision(text)


def test_real_measurement_prefers_what_it_measures():
    seconds = precision.measure_seconds(Precision(threads=1), float("inf"))
    assert 0 < seconds < float("inf")
    choice = choose_precision()
    assert choice.number in ("float32", "bfloat16", "int8")
    assert f"{choice} " in choice.origin


def test_running_restores_threads_and_format(monkeypatch):
    monkeypatch.undo()
    before = torch.get_num_threads()
    layer, image = torch.nn.Conv2d(3, 4, 3), torch.rand(1, 3, 8, 8)
    with contextlib.suppress(KeyError), Precision("bfloat16", "channels_last", 2).running():
        assert torch.get_num_threads() == 2
        assert layer(image).dtype == torch.bfloat16
        raise KeyError
    assert torch.get_num_threads() == before
    assert layer(image).dtype == torch.float32
    assert Precision().arrange(image).is_contiguous(memory_format=torch.channels_last)
    assert Precision(memory="contiguous").arrange(image).is_contiguous()


def test_threads_of_python_leave_torchs_as_they_were(monkeypatch) -> None:
    """The second comes before the first leaves, and leaves after it: neither may keep what the other set."""
    monkeypatch.setattr(torch, "get_num_threads", REAL_THREADS)
    before, entered, left, seen = REAL_THREADS(), threading.Event(), threading.Event(), []

    def second() -> None:
        with Precision(threads=2).running():
            entered.set()
            assert left.wait(60)

    def look() -> None:
        seen.append(REAL_THREADS())

    torch.set_num_threads(3)
    try:
        other = threading.Thread(target=second)
        with Precision(threads=2).running():
            assert REAL_THREADS() == 2
            other.start()
            assert entered.wait(60)
        assert REAL_THREADS() == 3
        left.set()
        other.join()
        new = threading.Thread(target=look)
        new.start()
        new.join()
        assert seen == [3]
    finally:
        left.set()
        torch.set_num_threads(before)
