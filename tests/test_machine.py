"""One module knows the machine; what it says does not depend on what the system leaves out."""

import subprocess
import sys

import numpy as np
import pytest

from quadmatch import machine

LINUX = """processor\t: 0
model name\t: Some Processor 9000
physical id\t: 0
core id\t\t: 0

processor\t: 1
model name\t: Some Processor 9000
physical id\t: 0
core id\t\t: 0
"""


@pytest.fixture
def cpuinfo(tmp_path, monkeypatch):
    """What the system says of its processors; None: nothing."""

    def write(text):
        path = tmp_path / "cpuinfo"
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(text)
        monkeypatch.setattr(machine, "Path", lambda name: path if name == "/proc/cpuinfo" else None)
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        monkeypatch.setattr(machine.os, "sched_getaffinity", lambda process: {0, 1}, raising=False)

    return write


def test_two_threads_of_one_core_are_one_core(cpuinfo):
    cpuinfo(LINUX)
    assert machine.name_processor() == "Some Processor 9000"
    assert machine.count_cores() == 1
    cpuinfo(LINUX.replace("core id\t\t: 0\n\n", "core id\t\t: 1\n\n"))
    assert machine.count_cores() == 2


def test_a_system_that_says_nothing_gets_a_name_and_its_cores(cpuinfo):
    cpuinfo(None)
    assert machine.name_processor()
    assert machine.count_cores() == 2


def test_memory_of_this_and_of_another_process():
    held = np.ones(8 * 2**20)
    now = machine.measure_memory()
    assert machine.measure_peak_memory() >= now > held.nbytes
    with subprocess.Popen([sys.executable, "-c", "print(1, flush=True); input()"], stdin=-1, stdout=-1) as other:
        other.stdout.readline()
        assert 2**20 < machine.measure_memory(other.pid) <= machine.measure_peak_memory(other.pid)
        other.communicate(b"\n")
    assert machine.measure_peak_memory(other.pid) == 0


def test_importing_it_brings_no_torch():
    # Not the package itself, whose public names bring torch: only its folder under its name.
    code = """import sys; package = sys.modules["quadmatch"] = type(sys)("quadmatch")
package.__path__ = [sys.argv[1]]
import quadmatch.machine, quadmatch.files
sys.exit("torch" in sys.modules)"""
    folder = str(machine.Path(machine.__file__).parent)
    assert subprocess.run([sys.executable, "-c", code, folder]).returncode == 0


def test_free_memory_is_the_least_of_what_the_system_says(monkeypatch):
    assert machine.measure_available_memory() > 0
    for name, found in (("_read_free_memory", 5), ("_read_group_memory", -1), ("_read_limit", None)):
        monkeypatch.setattr(machine, name, lambda found=found: found)
    assert machine.measure_available_memory() == 0
    monkeypatch.setattr(machine, "_read_group_memory", lambda: None)
    assert machine.measure_available_memory() == 5
    monkeypatch.setattr(machine, "_read_free_memory", lambda: None)
    assert machine.measure_available_memory() is None


def test_a_limit_of_the_process_counts():
    code = """
import resource
from quadmatch.machine import measure_available_memory
resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))
print(measure_available_memory())"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 0 < int(done.stdout) < 2**31
