import os
import pickle
from io import BytesIO

import numpy as np
import pytest
from archive_fixtures import split_file, write_zip

from quadmatch.datasets.split_file import read_split_file


class Harmful:
    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def as_npy(value, **options):
    array = np.empty(1, dtype=object)
    array[0] = value
    stream = BytesIO()
    np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(array))
    pickle.dump(array, stream, **options)
    return stream.getvalue()


def test_names_are_read_and_sorted(tmp_path):
    path = tmp_path / "pairs.npz"
    path.write_bytes(split_file(["cat/2008_2_1", "cat/2008_1_1", "dog/2008_1_2"], ["cat/2009_1_1"]))
    assert read_split_file(path) == {
        "train": ["cat/2008_1_1", "cat/2008_2_1", "dog/2008_1_2"],
        "test": ["cat/2009_1_1"],
    }


def test_names_are_what_numpy_would_load(tmp_path):
    path = tmp_path / "pairs.npz"
    path.write_bytes(split_file(["cat/2008_2_1", "dog/2008_1_2"], ["cat/2009_1_1"]))
    with np.load(path, allow_pickle=True) as loaded:
        expected = sorted(name[:-4] for row in loaded["train"] for name in row)
    assert read_split_file(path)["train"] == expected


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_harmful_pickle_is_refused_and_not_run(tmp_path, protocol):
    harm = tmp_path / "harm"
    bad = as_npy(Harmful(harm), protocol=protocol)
    path = write_zip(tmp_path / "pairs.npz", {"train.npy": bad, "test.npy": bad})
    with np.load(path, allow_pickle=True) as loaded:
        loaded["train"]
    assert harm.exists()  # so the pickle does what it should not
    harm.rmdir()
    with pytest.raises(ValueError, match="refused"):
        read_split_file(path)
    assert not harm.exists()


@pytest.mark.parametrize(
    "payload", [b"os\nsystem\n", b"builtins\neval\n", b"numpy\nload\n", b"numpy.core.multiarray\nscalar\n"]
)
def test_no_global_but_arrays_is_looked_up(tmp_path, payload):
    data = as_npy(["cat/1_1.xml"])
    start = len(data) - len(pickle.dumps(np.empty(1, dtype=object)))
    bad = data[: 10 + int.from_bytes(data[8:10], "little")] + b"\x80\x02c" + payload + b"."
    assert start
    path = write_zip(tmp_path / "pairs.npz", {"train.npy": bad, "test.npy": bad})
    with pytest.raises(ValueError, match="refused"):
        read_split_file(path)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"train.npy": as_npy(["cat/1_1.xml"])}, "test.npy"),
        ({"train.npy": b"no array", "test.npy": b""}, "not a numpy array"),
        ({"train.npy": as_npy(["../../etc/passwd"]), "test.npy": b""}, "expected class/picture_object.xml"),
        ({"train.npy": as_npy("text"), "test.npy": b""}, "expected a list"),
        ({"train.npy": as_npy(["cat/1_1.xml"])[:-20], "test.npy": b""}, "pairs.npz"),
    ],
)
def test_broken_files_are_named(tmp_path, files, message):
    path = write_zip(tmp_path / "pairs.npz", files)
    with pytest.raises(ValueError, match=message):
        read_split_file(path)
    (tmp_path / "no.npz").write_bytes(b"no zip")
    with pytest.raises(ValueError, match=r"no\.npz"):
        read_split_file(tmp_path / "no.npz")
