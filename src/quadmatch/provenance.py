"""What a result must say about where it came from."""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def describe_origin() -> dict[str, str]:
    """Date, command, hardware, commit and versions of a result that is made now."""
    import torch

    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": describe_command(),
        "hardware": describe_hardware(),
        "commit": find_commit(),
        "version": find_version(),
        "torch": torch.__version__,
    }


def describe_command() -> str:
    """The command line; of files and folders only their names, not their places on this machine."""
    program, *arguments = sys.argv or [""]
    name = Path(program).stem.replace("cli", "quadmatch")  # as a module, it is the file's name
    return shlex.join([name, *(re.sub(r"(?<![\w.])/\S*/", "", one) for one in arguments)])


def describe_hardware() -> str:
    """Processor, cores and accelerator."""
    import torch

    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    parts = [model, f"{os.cpu_count()} cores"]
    if torch.cuda.is_available():
        parts.append(torch.cuda.get_device_name())
    return ", ".join(parts)


def find_commit() -> str:
    """Of the checkout that this package is in, marked if files differ; empty for an installed wheel."""
    folder = Path(__file__).resolve().parent

    def ask(*words: str) -> str:
        command = ["git", "-C", str(folder), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
        return done.stdout.strip()

    try:
        # A wheel may lie inside some other project's checkout: only a tracked package counts.
        ask("ls-files", "--error-unmatch", Path(__file__).name)
        changed = ask("status", "--porcelain", "--untracked-files=no", "--", str(folder))
        return ask("rev-parse", "--short=12", "HEAD") + ("+changes" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return ""


def find_version() -> str:
    """Of the installed package."""
    try:
        return version("quadmatch")
    except PackageNotFoundError:
        return ""
