"""What a run says of itself: a progress bar, lines of JSON, and TensorBoard where it is installed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from quadmatch.files import write_file

LOG = "log.jsonl"
Say = Callable[[str], None]


class TrainingLog:
    """Progress of a run that has done `step` steps of `steps`; lines of later steps are forgotten."""

    def __init__(self, run: Path, step: int, steps: int, say: Say = print, board: bool = True) -> None:
        self.path, self.say = run / LOG, say
        cut_log(self.path, step)
        self.file = self.path.open("a", encoding="utf-8")
        self.board = _open_board(run, step, say) if board else None
        self.bar, self.task = _open_bar(step, steps)

    def advance(self, step: int, values: dict[str, float]) -> None:
        """Move the bar after a step."""
        if self.bar is not None:
            text = " ".join(f"{name} {value:.3g}" for name, value in values.items())
            self.bar.update(self.task, completed=step, description=text)

    def write(self, step: int, kind: str, values: dict[str, float]) -> None:
        """One line of JSON, the same for TensorBoard, and a sentence where there is no bar."""
        self.file.write(json.dumps({"step": step, "kind": kind, **values}) + "\n")
        self.file.flush()
        if self.board is not None:
            for name, value in values.items():
                self.board.add_scalar(f"{kind}/{name}", value, step)
        text = ", ".join(f"{name} {value:.4g}" for name, value in values.items())
        if self.bar is None or kind != "train":
            self.say(f"step {step}, {kind}: {text}")

    def __enter__(self) -> TrainingLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.file.close()
        if self.board is not None:
            self.board.close()
        if self.bar is not None:
            self.bar.stop()


def read_log(run: Path) -> list[dict[str, Any]]:
    """The lines of a run's log; one that a kill cut short is left out."""
    path = run / LOG
    return [json.loads(line) for line in _whole_lines(path)] if path.is_file() else []


def cut_log(path: Path, step: int) -> None:
    """Remove lines of steps after `step`, which a resumed run writes again."""
    if not path.is_file():
        return
    kept = [line for line in _whole_lines(path) if json.loads(line)["step"] <= step]
    write_file(path, "".join(kept).encode())


def _whole_lines(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [line for line in lines if line.endswith("\n")]


def _open_board(run: Path, step: int, say: Say) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        say(f"TensorBoard is not installed; progress is in {run / LOG}")
        return None
    return SummaryWriter(str(run / "tensorboard"), purge_step=step + 1)


def _open_bar(step: int, steps: int) -> tuple[Any, Any]:
    """A progress bar, if someone looks."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        return None, None
    columns = MofNCompleteColumn(), BarColumn(), TimeRemainingColumn(), TextColumn("{task.description}")
    bar = Progress(*columns, console=console)
    bar.start()
    return bar, bar.add_task("", total=steps, completed=step)
