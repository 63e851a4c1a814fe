"""Workers on Ray write what one process writes, whoever is killed, and what is wrong is said at once."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from live_processes import lives
from object_store import serve_objects
from pair_list import BROKEN, PAIRS, PICTURES, write_pair_list
from ray_cluster import SHARED
from typer.testing import CliRunner

import quadmatch.own_images.bulk as many
from quadmatch.cli import app
from quadmatch.launch import cluster
from quadmatch.launch.cluster import Cluster, ClusterError, count_workers, knock
from quadmatch.launch.pairs import match_on_ray
from quadmatch.models.load import load
from quadmatch.own_images.answer import Settings
from quadmatch.own_images.pair_lists import read_pairs

GROUP, SECRET = 4, "do-not-tell"


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Each worker has the threads of one local process: here one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setattr(many, "TOGETHER", GROUP)
        yield


@pytest.fixture(scope="module")
def pairs(tmp_path_factory) -> Path:
    return write_pair_list(tmp_path_factory.mktemp("pairs"))


@pytest.fixture(scope="module")
def expected(pairs) -> bytes:
    """What the engine `local` writes."""
    out = pairs.parent / "local.jsonl"
    report = run(pairs, out, many.match_here)
    assert report.prepared == PICTURES
    return out.read_bytes()


@pytest.fixture(scope="session")
def ended():
    """Processes that must have ended by themselves; Ray's agents take a minute to see that they are alone."""
    made: list[psutil.Process] = []
    yield made
    wait_until(lambda: not any(lives(one) for one in made))


# A lambda is sent by value: the workers do not know this file.
load_named = lambda name, precision: load(name, precision=precision)  # noqa: E731


def run(pairs: Path, out: Path, engine, progress=None, load=load_named, memory: int = 2**28) -> many.Report:
    settings = Settings(model=str(pairs.parent / "run"))
    options = {"engine": engine, "progress": progress, "memory": memory}
    return many.match_many(read_pairs(pairs), pairs.parent, out, load, settings, **options)


def list_workers() -> list[psutil.Process]:
    """Processes of this one's clusters that work."""
    return [one for one in psutil.Process().children(recursive=True) if name_process(one).startswith("ray::Worker")]


def name_process(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline()[:1])
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return ""


class Once:
    """Does something when the first lines are written, and not again."""

    def __init__(self, action) -> None:
        self.action, self.done = action, False

    def __call__(self, done: int, total: int) -> None:
        if 0 < done < total and not self.done:
            self.done = True
            self.action()


PROGRAM = """
import sys, time
from pathlib import Path
from ray_cluster import be_patient
from test_pairs import run
from quadmatch.launch.cluster import Cluster
from quadmatch.launch.pairs import match_on_ray
import quadmatch.own_images.bulk as many

many.TOGETHER = {group}

def hold(done, total):
    if done:  # However late the kill comes, it comes before the end.
        print("held", flush=True)
        time.sleep(600)

with be_patient():
    run(Path({pairs!r}), Path({out!r}), match_on_ray(Cluster(workers=1)), hold)
"""


@pytest.mark.slow
@pytest.mark.ray
def test_the_driver_is_killed_and_started_again(pairs, expected, nodes, ended, tmp_path) -> None:
    out = tmp_path / "m.jsonl"
    places = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")]
    program = f"import sys; sys.path[:0] = {places!r}" + PROGRAM.format(group=GROUP, pairs=str(pairs), out=str(out))
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        # Ray may tell a driver of a machine that an earlier test took away.
        assert any(line == "held\n" for line in process.stdout)
        started = psutil.Process(process.pid).children(recursive=True)
        assert any(name_process(one).startswith("ray::Worker") for one in started)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert 0 < len(out.read_bytes()) < len(expected)
    report = run(pairs, out, match_on_ray(Cluster(nodes.address, 1)))
    assert report.resumed == GROUP
    assert out.read_bytes() == expected
    ended.extend(started)


@pytest.mark.ray
def test_a_worker_that_is_killed(pairs, expected, nodes, tmp_path) -> None:
    killed = Once(lambda: list_workers()[0].kill())
    report = run(pairs, tmp_path / "m.jsonl", match_on_ray(Cluster(nodes.address)), killed)
    assert killed.done
    assert (tmp_path / "m.jsonl").read_bytes() == expected
    assert report.prepared >= PICTURES


@pytest.mark.ray
def test_turned_pictures_are_the_same_bytes(pairs, nodes, tmp_path) -> None:
    words = "--orientation", "auto"
    invoke(pairs, tmp_path / "m.jsonl", *words, "--engine", "ray", "--address", nodes.address)
    invoke(pairs, tmp_path / "local.jsonl", *words)
    assert (tmp_path / "m.jsonl").read_bytes() == (tmp_path / "local.jsonl").read_bytes()
    assert b'"orientation": "0"' in (tmp_path / "m.jsonl").read_bytes()


@pytest.mark.ray
def test_little_memory_makes_pictures_anew(pairs, expected, nodes, tmp_path) -> None:
    report = run(pairs, tmp_path / "m.jsonl", match_on_ray(Cluster(nodes.address, 1)), memory=0)
    assert (tmp_path / "m.jsonl").read_bytes() == expected
    assert report.prepared > PICTURES


@pytest.mark.ray
def test_a_machine_that_is_removed(pairs, expected, nodes, tmp_path) -> None:
    other = next(node for node in nodes.list_all_nodes() if node is not nodes.head_node)
    removed = Once(lambda: nodes.remove_node(other, allow_graceful=False))
    try:
        run(pairs, tmp_path / "m.jsonl", match_on_ray(Cluster(nodes.address)), removed)
    finally:
        if removed.done:
            SHARED.add()
    assert removed.done
    assert (tmp_path / "m.jsonl").read_bytes() == expected


@pytest.mark.ray
def test_workers_that_die_at_once(pairs, nodes, tmp_path) -> None:
    fatal = lambda name, precision: os._exit(3)  # noqa: E731
    with pytest.raises(ClusterError, match="4 workers in a row died before they did anything"):
        run(pairs, tmp_path / "m.jsonl", match_on_ray(Cluster(nodes.address)), load=fatal)
    assert not list(tmp_path.iterdir())
    wait_until(lambda: not list_workers())


def wait_until(condition, seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def invoke(pairs: Path, out: Path, *words: object):
    chosen = ["match-many", str(pairs), "--out", str(out), "--model", str(pairs.parent / "run")]
    return CliRunner().invoke(app, [*chosen, *map(str, words)])


@pytest.mark.ray
def test_two_machines_write_what_one_process_writes_and_say_what_was_computed(pairs, nodes, tmp_path) -> None:
    words = "--engine", "ray", "--address", nodes.address
    done, local = invoke(pairs, tmp_path / "m.parquet", *words), invoke(pairs, tmp_path / "local.parquet")
    assert done.exit_code == local.exit_code == 1
    assert f"{PICTURES + 1} pictures, features computed of {PICTURES}" in done.output
    assert f"{PAIRS - 1} of {PAIRS} pairs matched" in done.output
    assert re.findall(r"^  row (\d+): ", done.output, flags=re.MULTILINE) == [str(BROKEN)]
    assert (tmp_path / "m.parquet").read_bytes() == (tmp_path / "local.parquet").read_bytes()


@pytest.fixture
def silent():
    """An address at which nobody listens, nor can anybody else begin to."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


def test_a_cluster_that_nobody_answers_at(pairs, tmp_path, monkeypatch, silent) -> None:
    done = invoke(pairs, tmp_path / "m.jsonl", "--engine", "ray", "--address", silent)
    assert done.exit_code == 1
    assert done.output.splitlines()[-1].startswith(f"error: no Ray cluster answers at {silent} (")
    assert not list(tmp_path.iterdir())
    monkeypatch.setenv("RAY_ADDRESS", silent)
    assert f"answers at {silent}" in invoke(pairs, tmp_path / "m.jsonl", "--engine", "ray", "--address", "auto").output
    for wrong in ("nowhere", "ray://", "host:port"):
        with pytest.raises(ClusterError, match="a cluster's address is auto, host:port or ray://host:port"):
            knock(wrong)
    with pytest.raises(ClusterError, match=r"answers at no\.machine\.invalid:6379"):
        knock("no.machine.invalid:6379")


def test_a_folder_that_cannot_be_written(pairs, tmp_path) -> None:
    (tmp_path / "file").touch()
    done = invoke(pairs, tmp_path / "file" / "m.jsonl", "--engine", "ray")
    assert done.exit_code == 1
    assert "cannot write" in done.output
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


@pytest.mark.ray
def test_a_storage_that_refuses_is_said_and_no_secret(pairs, nodes, tmp_path) -> None:
    names = ["0.png", "0.json", "1.png", "1.json"]
    objects = {name: (pairs.parent / name).read_bytes() for name in names}
    sides = [f"0.png?signature={SECRET},0.json", "1.png,1.json", f"closed/0.png?signature={SECRET},0.json"]
    lines = ["image_a,points_a,image_b,points_b", f"{sides[0]},{sides[1]}", f"{sides[2]},{sides[1]}"]
    objects |= {"pairs.csv": "\n".join(lines).encode(), "closed/0.png": objects["0.png"]}
    model = ("--model", str(pairs.parent / "run"))
    ray = ("--engine", "ray", "--address", nodes.address, "--workers", "1")
    said = []
    with serve_objects(objects) as store:
        for name, words in (("local", ()), ("ray", ray)):
            out = ("--out", str(tmp_path / f"{name}.jsonl"))
            said.append(CliRunner().invoke(app, ["match-many", f"{store}/pairs.csv", *out, *model, *words]))
        refused = CliRunner().invoke(app, ["match-many", f"{store}/closed/0.png?signature={SECRET}", *out, *ray])
    assert [one.exit_code for one in (*said, refused)] == [1, 1, 1]
    assert f"row 2: side a: image: cannot read {store}/closed/0.png?…: the storage refuses it" in said[1].output
    assert refused.output.startswith(f"error: the list: cannot read {store}/closed/0.png?…: the storage refuses it")
    found, expected = (tmp_path / f"{name}.jsonl" for name in ("ray", "local"))
    assert found.read_bytes() == expected.read_bytes()
    assert SECRET not in found.read_text() + said[1].output + refused.output


def test_options_of_another_engine_are_refused(pairs, tmp_path) -> None:
    assert "belong to --engine ray" in invoke(pairs, tmp_path / "m.jsonl", "--workers", 2).output
    assert "belong to --engine ray" in invoke(pairs, tmp_path / "m.jsonl", "--address", "auto").output


class Told:
    """A cluster of machines with so many processors each."""

    def __init__(self, *processors: float) -> None:
        self.processors = processors

    def nodes(self) -> list[dict[str, object]]:
        return [{"Alive": True, "Resources": {"CPU": one}} for one in self.processors]


def test_workers_are_as_many_as_fit() -> None:
    assert count_workers(Told(8.0, 3.0), Cluster(), 2) == 5
    assert count_workers(Told(8.0, 3.0), Cluster(workers=2), 2) == 2
    assert count_workers(Told(8.0), Cluster(workers=20), 1) == 8
    with pytest.raises(ClusterError, match=r"needs 4 processors on one machine.*more than 2: set OMP_NUM_THREADS=2"):
        count_workers(Told(2.0, 2.0), Cluster(), 4)


class Slow:
    """A Ray whose own processes do not start in time."""

    ended = False

    def init(self, **options: object) -> None:
        raise Exception("The current node timed out during startup.\nMore.")

    def is_initialized(self) -> bool:
        return False

    def shutdown(self) -> None:
        self.ended = True


def test_a_ray_that_does_not_start_is_said_in_a_line_and_ended(monkeypatch) -> None:
    slow = Slow()
    monkeypatch.setattr(cluster, "load_ray", lambda: slow)
    with pytest.raises(ClusterError) as caught, cluster.join_cluster(Cluster(), 0):
        pytest.fail("there is none to join")
    assert str(caught.value) == "cannot use Ray on this machine: The current node timed out during startup."
    assert slow.ended
