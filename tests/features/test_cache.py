"""The feature store: what is added is read back, whatever happens to the process that adds it."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadmatch.features import cache
from quadmatch.features.cache import FeatureStore, hash_entry, hash_key


def make_entry(name, keypoints=3):
    generator = np.random.default_rng(abs(hash(name)) if not name.isdecimal() else int(name))
    return {
        "near": generator.normal(size=(keypoints, 4, 2, 2)).astype(np.float16),
        "whole": generator.normal(size=7).astype(np.float16),
        "points": generator.normal(size=(keypoints, 2)).astype(np.float32),
        "pixels": generator.integers(0, 256, (4, 4, 3), dtype=np.uint8),
    }


def assert_entry(store, name, keypoints=3):
    found, expected = store.get(name), make_entry(name, keypoints)
    assert found.keys() == expected.keys()
    for part, values in expected.items():
        assert found[part].dtype == values.dtype
        np.testing.assert_array_equal(found[part], values)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5)), max_size=20), st.integers(1, 2000))
def test_what_is_added_is_read_back(tmp_path_factory, additions, shard_bytes):
    folder = tmp_path_factory.mktemp("store")
    kept = {}
    with FeatureStore.open(folder, "key", shard_bytes=shard_bytes) as store:
        for number, keypoints in additions:
            store.add(str(number), make_entry(str(number), kept.setdefault(str(number), keypoints)))
            assert_entry(store, str(number), kept[str(number)])
    for again in (store, FeatureStore.open(folder, "key")):
        assert len(again) == len(kept)
        for name, keypoints in kept.items():
            assert name in again
            assert_entry(again, name, keypoints)
        assert again.missing(["7", "absent", *kept, "absent"]) == [n for n in ("7", "absent") if n not in kept]


def test_reading_copies_nothing_and_cannot_write(tmp_path):
    with FeatureStore.open(tmp_path, "key") as store:
        store.add("1", make_entry("1"))
    values = store.get("1")["near"]
    assert not values.flags.owndata
    assert values.base is not None
    with pytest.raises(ValueError, match="read-only"):
        values[0] = 0


def test_keys_keep_stores_apart(tmp_path):
    with FeatureStore.open(tmp_path, "first") as store:
        store.add("1", make_entry("1"))
    assert FeatureStore.open(tmp_path, "second").missing(["1"]) == ["1"]
    with pytest.raises(KeyError, match="'2'"):
        store.get("2")
    for name in ("", "a|b"):
        with pytest.raises(ValueError, match="name"):
            store.add(name, make_entry("1"))
    with pytest.raises(TypeError, match="'x'"):
        store.add("3", {"x": np.zeros(3)})


def test_hashes_depend_on_everything_that_matters():
    pixels, points = np.arange(48, dtype=np.uint8).reshape(4, 4, 3), np.ones((2, 2))
    base = hash_entry(pixels, (0.0, 0.0, 4.0, 4.0), points)
    assert base == hash_entry(pixels.copy(), [0.0, 0.0, 4.0, 4.0], points.copy())
    others = [
        hash_entry(pixels + 1, (0.0, 0.0, 4.0, 4.0), points),
        hash_entry(pixels.reshape(2, 8, 3), (0.0, 0.0, 4.0, 4.0), points),
        hash_entry(pixels, (0.0, 0.0, 4.0, 3.0), points),
        hash_entry(pixels, None, points),
        hash_entry(pixels, (0.0, 0.0, 4.0, 4.0), points + 1e-9),
        hash_entry(pixels.tobytes(), (0.0, 0.0, 4.0, 4.0), points),
    ]
    assert len({base, *others}) == 7
    assert hash_key({"a": 1, "b": (2, 3)}) == hash_key({"b": (2, 3), "a": 1}) != hash_key({"a": 1, "b": (2, 4)})


@pytest.mark.parametrize("damage", ["cut", "head", "empty", "flip", "length"])
def test_damaged_shard_is_named(damage, tmp_path):
    with FeatureStore.open(tmp_path, "key") as store:
        store.add("1", make_entry("1"))
    (path,) = store.folder.glob("*.safetensors")
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[-3] ^= 4
    if damage == "length":
        content[5] = 255
    changed = {"cut": content[:-1], "head": content[:20], "empty": b""}.get(damage, content)
    path.write_bytes(changed)
    with pytest.raises(ValueError, match=path.name):
        FeatureStore.open(tmp_path, "key").get("1")
    path.unlink()
    assert FeatureStore.open(tmp_path, "key").missing(["1"]) == ["1"]


def test_stores_see_each_others_shards(tmp_path):
    first, second = FeatureStore.open(tmp_path, "key"), FeatureStore.open(tmp_path, "key")
    for store in (first, second):
        store.add("1", make_entry("1"))
        store.flush()
    second.add("2", make_entry("2"))
    second.flush()
    assert first.missing(["1", "2"]) == ["2"]
    first.refresh()
    assert_entry(first, "2")
    assert len(first) == 2
    assert first._places["1"] == FeatureStore.open(tmp_path, "key")._places["1"]


def test_old_shard_is_written_before_it_is_full(tmp_path, monkeypatch):
    now = 0.0
    monkeypatch.setattr(cache.time, "monotonic", lambda: now)
    store = FeatureStore.open(tmp_path, "key")
    for name, later in (("1", 20.0), ("2", 20.0), ("3", 0.0)):
        store.add(name, make_entry(name))
        now += later
    assert FeatureStore.open(tmp_path, "key").missing(["1", "2", "3"]) == []
    store.add("4", make_entry("4"))
    assert FeatureStore.open(tmp_path, "key").missing(["4"]) == ["4"]


HERE = str(Path(__file__).parent)
WRITER = """
import sys, time
sys.path.insert(0, {tests!r})
from test_cache import make_entry
from quadmatch.features.cache import FeatureStore
names = [str(number) for number in range(60)]
store = FeatureStore.open({folder!r}, "key", shard_bytes=500)
print("found", len(names) - len(store.missing(names)), flush=True)
for name in store.missing(names):
    store.add(name, make_entry(name))
    time.sleep({pause})
    if name == {last!r}:  # However late the kill comes, it comes before the end.
        time.sleep(600)
store.flush()
"""


def test_killed_writer_is_continued(tmp_path):
    def start(pause, last=None):
        code = WRITER.format(tests=HERE, folder=str(tmp_path), pause=pause, last=last)
        return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)

    process = start(0.05, last="40")
    try:
        while len(list((tmp_path / "key").glob("*.safetensors"))) < 4:
            assert process.poll() is None
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    (tmp_path / "key" / "1-x.partial").write_bytes(b"half a shard")  # As a kill in the middle of writing leaves it.
    survived = FeatureStore.open(tmp_path, "key")
    names = [str(number) for number in range(60)]
    kept = 60 - len(survived.missing(names))
    assert 4 <= kept < 60
    output, _ = start(0).communicate(timeout=600)
    assert output.strip() == f"found {kept}"
    whole = FeatureStore.open(tmp_path, "key")
    assert whole.missing(names) == []
    for name in names:
        assert_entry(whole, name)
