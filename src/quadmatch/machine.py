"""What this machine is and what it holds: processor, cores, memory; and where a result came from."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

KEPT = 2**30
"""Bytes of free memory that a process keeps for its next convolutions."""
_TRIM_THRESHOLD, _MOST_MAPPED = -1, -4
"""Numbers of two of glibc's settings, from its malloc.h."""


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
    path = Path(program)  # As a module, it is the file's.
    name = path.parent.name if path.stem == "__main__" else path.stem.replace("cli", "quadmatch")
    return shlex.join([name, *(re.sub(r"(?<![\w.])/\S*/", "", one) for one in arguments)])


def describe_hardware() -> str:
    """Processor, cores and accelerator."""
    import torch

    parts = [name_processor(), f"{os.cpu_count()} cores"]
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


def name_processor() -> str:
    """The processor's model, as in `AMD EPYC 7763`."""
    models = [one["model name"] for one in _list_processors() if "model name" in one]
    return models[0] if models else platform.processor() or platform.machine()


def count_cores() -> int:
    """Physical cores that this process may use; `OMP_NUM_THREADS` if that is set."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # A system without affinities.
        allowed = os.cpu_count() or 1
    # Threads of one core have its number in common; some virtual machines do not number cores.
    cores = {(one.get("physical id"), one.get("core id", one.get("processor"))) for one in _list_processors()}
    return max(1, min(allowed, len(cores) or allowed))


def _list_processors() -> list[dict[str, str]]:
    """What Linux says of each processor; nothing elsewhere."""
    try:
        blocks = Path("/proc/cpuinfo").read_text().strip().split("\n\n")
    except OSError:
        return []
    pairs = ([line.partition(":") for line in block.splitlines()] for block in blocks)
    return [{key.strip(): value.strip() for key, _, value in lines} for lines in pairs]


def measure_memory(process: int | None = None) -> int:
    """Bytes that a process, or this one, holds now; where the system does not say, the most until now."""
    return _read_status("VmRSS", process) or measure_peak_memory(process)


def measure_peak_memory(process: int | None = None) -> int:
    """Most bytes that a process, or this one, has held until now; 0 where the system does not say."""
    # The kernel's own count first: what getrusage says begins with the size of the parent process.
    peak = _read_status("VmHWM", process)
    if peak or process is not None:
        return peak
    try:
        import resource
    except ImportError:  # A system without it.
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def measure_available_memory() -> int | None:
    """Bytes that this process may still take: of the machine, of its control group and of its own limit."""
    found = [one for one in (_read_free_memory(), _read_group_memory(), _read_limit()) if one is not None]
    return max(0, min(found)) if found else None


def _read_free_memory() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")), None)


def _read_group_memory() -> int | None:
    """What a container is allowed beyond what it holds; files that it has read count as free."""
    folder = Path("/sys/fs/cgroup")
    try:
        most, held = (int((folder / f"memory.{name}").read_text()) for name in ("max", "current"))
        kept = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):  # No such group, or no limit: "max".
        return None
    return most - held + int(kept.get("inactive_file", 0))


def _read_limit() -> int | None:
    """What `ulimit -v` leaves."""
    try:
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
    except ImportError:  # A system without it.
        return None
    return None if most == resource.RLIM_INFINITY else most - _read_status("VmSize", None)


def _read_status(field: str, process: int | None) -> int:
    try:
        lines = Path(f"/proc/{process or 'self'}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(field)), 0)


def keep_pages() -> bool:
    """Keep freed memory for what comes next; whether this system, and whoever started the process, allow it.

    glibc gives each large block back to the system at once and asks for it again at the next convolution, and the
    system fills it with zeros each time.
    """
    given = os.environ.get("GLIBC_TUNABLES", "").startswith("glibc.malloc")
    if given or any(name.startswith("MALLOC_") for name in os.environ) or platform.libc_ver()[0] != "glibc":
        return False
    library = ctypes.CDLL(None)
    return bool(library.mallopt(_MOST_MAPPED, 0) and library.mallopt(_TRIM_THRESHOLD, KEPT))
