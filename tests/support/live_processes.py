"""Which processes are still there."""

import psutil


def lives(process: psutil.Process) -> bool:
    """Whether it runs; one that has ended, and that nobody has asked how, does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
