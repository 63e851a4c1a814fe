import gzip
import hashlib
import io
import json
import os
import stat
import tarfile
import tracemalloc
import zipfile
from dataclasses import replace
from functools import partial

import pytest
from archive_fixtures import VOC_TEST, VOC_TRAIN, make_voc, write_files, write_tar, write_zip
from archive_fixtures import willow_files as make_willow_files

from quadmatch.datasets import archives, sources
from quadmatch.datasets.archives import prepare, resolve
from quadmatch.datasets.downloads import download
from quadmatch.datasets.parts import RECORD, list_parts
from quadmatch.datasets.unpacking import unpack as unpack_within
from quadmatch.files import remove_partial

unpack = partial(unpack_within, largest=10**6, most=100)


@pytest.fixture(autouse=True)
def _own_root(tmp_path, monkeypatch):
    monkeypatch.setenv("QUADMATCH_DATA", str(tmp_path / "default"))
    monkeypatch.delenv("QUADMATCH_MIRROR", raising=False)


@pytest.fixture
def willow_mirror(tmp_path):
    files = make_willow_files(2)
    write_zip(tmp_path / "mirror" / "deep" / "er" / "WILLOW-ObjectClass_dataset.zip", files)
    return tmp_path / "mirror"


def list_files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("write", [write_zip, write_tar])
def test_unpack_gives_the_files(tmp_path, write):
    files = {"a/b/one.txt": b"1", "./a/two.txt": b"22", "__MACOSX/a/x": b"", "a/.DS_Store": b""}
    unpack(write(tmp_path / "archive", files), tmp_path / "out")
    assert list_files(tmp_path / "out") == ["a/b/one.txt", "a/two.txt"]
    assert (tmp_path / "out/a/two.txt").read_bytes() == b"22"
    unpack(tmp_path / "archive", tmp_path / "some", wanted=("b",))
    assert list_files(tmp_path / "some") == ["a/b/one.txt"]


BAD_NAMES = ["../evil", "a/../../evil", "/evil", "..", "a\\..\\evil", "C:/evil"]


@pytest.mark.parametrize("write", [write_zip, write_tar])
@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_lead_outside_are_refused_and_leave_nothing(tmp_path, write, name):
    archive = write(tmp_path / "in" / "archive", {"good": b"1", name: b"2"})
    with pytest.raises(ValueError, match=r"archive: member .* leads outside"):
        unpack(archive, tmp_path / "out" / "place")
    assert list_files(tmp_path) == ["in/archive"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_are_refused(tmp_path, kind):
    with tarfile.open(tmp_path / "archive", "w") as archive:
        info = tarfile.TarInfo("link")
        info.type, info.linkname = kind, "/etc/passwd"
        archive.addfile(info)
    with pytest.raises(ValueError, match="'link' is not a plain file"):
        unpack(tmp_path / "archive", tmp_path / "out")
    with zipfile.ZipFile(tmp_path / "zipped", "w") as archive:
        info = zipfile.ZipInfo("link")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(ValueError, match="'link' is not a plain file"):
        unpack(tmp_path / "zipped", tmp_path / "out")
    assert list_files(tmp_path) == ["archive", "zipped"]


@pytest.mark.parametrize("write", [write_zip, write_tar])
def test_limits_hold(tmp_path, write):
    archive = write(tmp_path / "archive", {"a": b"0" * 3000, "b": b"0" * 3000})
    with pytest.raises(ValueError, match=r"more than 0\.00476837 MB, so it is not what was meant"):
        unpack(archive, tmp_path / "out", largest=5000)
    with pytest.raises(ValueError, match="more than 1 files and folders"):
        unpack(archive, tmp_path / "out", most=1)
    assert not (tmp_path / "out").exists()


def write_long_name(path, kind, size, chain=1):
    """A member before which there is a header of `size` bytes of one letter, so many times."""
    header = tarfile.TarInfo("long")
    header.type, header.size = kind, size
    with gzip.open(path, "wb") as file:
        for number in range(chain):
            text = b"a" * size
            if kind in (tarfile.XHDTYPE, tarfile.XGLTYPE):
                start = f"{size} comment{number}=".encode()
                text = start + b"a" * (size - len(start) - 1) + b"\n"
            file.write(header.tobuf(tarfile.GNU_FORMAT) + text + bytes(-size % 512))
        file.write(tarfile.TarInfo("file").tobuf() + bytes(1024))


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_headers_of_a_tar_have_a_bound(tmp_path, kind):
    path = tmp_path / "archive.tgz"
    for size, chain in ((20 * 2**20, 1), (2**14, 8)):
        write_long_name(path, kind, size, chain)
        tracemalloc.start()
        with pytest.raises(ValueError, match=r"cannot unpack .*archive\.tgz: its headers are too large") as caught:
            unpack(path, tmp_path / "out")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2**22
        assert len(str(caught.value)) < 300
    write_long_name(path, kind, 100)
    unpack(path, tmp_path / "out")
    assert list_files(tmp_path / "out") == ["a" * 100 if kind == tarfile.GNUTYPE_LONGNAME else "file"]


def test_headers_of_all_members_together_have_a_bound(tmp_path, monkeypatch):
    archive = write_tar(tmp_path / "archive", dict.fromkeys("abc", b"0" * 10_000))
    monkeypatch.setattr("quadmatch.datasets.unpacking.HEADERS", 1500)
    with pytest.raises(ValueError, match="headers are too large"):
        unpack(archive, tmp_path / "out")


@pytest.mark.parametrize("write", [write_zip, write_tar])
def test_long_names_are_cut_and_told(tmp_path, write):
    for name, fault in (("../" + "a" * 5000, "leads outside"), ("a" * 9000, "File name too long")):
        with pytest.raises(ValueError, match=rf"cannot unpack .*archive: .*{fault}") as caught:
            unpack(write(tmp_path / "archive", {name: b""}), tmp_path / "out")
        assert len(str(caught.value)) < 900


def test_folders_and_files_that_are_not_wanted_count_too(tmp_path):
    with tarfile.open(tmp_path / "folders.tgz", "w:gz") as archive:
        for number in range(101):
            info = tarfile.TarInfo(f"folder{number}")
            info.type = tarfile.DIRTYPE
            archive.addfile(info)
    write_zip(tmp_path / "files.zip", {f"a/{number}": b"" for number in range(101)})
    for name in ("folders.tgz", "files.zip"):
        with pytest.raises(ValueError, match=rf"{name}: it holds more than 100 files and folders"):
            unpack(tmp_path / name, tmp_path / "out", wanted=("b",))


def test_a_truncated_archive_is_named_and_leaves_nothing(tmp_path):
    whole = write_tar(tmp_path / "whole", {"a": b"0" * 100_000}, "w:gz").read_bytes()
    for name, data in (("cut.tgz", whole[: len(whole) // 2]), ("text.zip", b"no archive")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ValueError, match=name):
            unpack(tmp_path / name, tmp_path / "out")
    assert list_files(tmp_path) == ["cut.tgz", "text.zip", "whole"]


def test_what_a_killed_unpacking_left_is_removed_when_it_is_old(tmp_path):
    (tmp_path / ".partial-x").mkdir()
    remove_partial(tmp_path)
    assert (tmp_path / ".partial-x").exists()
    remove_partial(tmp_path, age=-1.0)
    assert not (tmp_path / ".partial-x").exists()


def test_prepare_finds_unpacks_and_then_does_nothing(tmp_path, willow_mirror, monkeypatch):
    first = prepare("willow", mirror=willow_mirror, root=tmp_path / "root")
    assert len(first.folders) == 1
    assert "not a known copy" in first.messages[0]
    assert not first.missing
    assert len(list_files(first.folders[0])) == 2 * 11 + 1 + 1  # pictures and points, dot file, record
    record = json.loads((first.folders[0] / RECORD).read_text())
    assert record["file"] == "WILLOW-ObjectClass_dataset.zip"
    monkeypatch.setattr("quadmatch.datasets.parts.unpack", None)
    again = prepare("willow", mirror=willow_mirror, root=tmp_path / "root")
    alone = prepare("willow", root=tmp_path / "root", download=False)
    assert first.folders == again.folders == alone.folders
    assert "already there" in again.messages[0]


def test_the_same_archive_elsewhere_is_the_same_part(tmp_path, willow_mirror):
    first = prepare("willow", mirror=willow_mirror)
    moved = tmp_path / "moved"
    moved.mkdir()
    (moved / "WILLOW-ObjectClass_dataset.zip").write_bytes(next(willow_mirror.rglob("*.zip")).read_bytes())
    assert prepare("willow", mirror=moved).folders == first.folders


def test_two_mirrors_are_two_parts(tmp_path):
    train = prepare("pascal-voc", mirror=make_voc(tmp_path / "m1", VOC_TRAIN), root=tmp_path / "root")
    test = prepare("pascal-voc", mirror=make_voc(tmp_path / "m2", VOC_TEST), root=tmp_path / "root")
    assert len(set(train.folders) | set(test.folders)) == 5  # the split file is the same
    assert set(list_parts(tmp_path / "root" / "pascal-voc")) == {*train.folders, *test.folders}


def test_prepare_names_what_is_missing(tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    result = prepare("pascal-voc", mirror=tmp_path / "empty")
    assert not result.folders
    assert [text.split()[0] for text in result.missing] == [one.file for one in sources.ARCHIVES["pascal-voc"]]
    with pytest.raises(FileNotFoundError, match="no mirror"):
        prepare("willow", mirror=tmp_path / "nowhere")
    with pytest.raises(ValueError, match="got 'folder'"):
        prepare("folder")


def test_a_pipe_is_no_archive(tmp_path):
    """Whoever opened it would wait for ever."""
    official = sources.ARCHIVES["willow"][0]
    os.mkfifo(tmp_path / official.file)
    assert "not under" in prepare("willow", mirror=tmp_path, root=tmp_path / "root").missing[0]


def test_prepare_fetches_when_there_is_no_mirror(tmp_path, willow_mirror, monkeypatch):
    source = next(willow_mirror.rglob("*.zip"))
    official = sources.ARCHIVES["willow"][0]
    urls = ((tmp_path / "gone.zip").as_uri(), source.as_uri())
    changed = replace(official, urls=urls)
    monkeypatch.setitem(archives.ARCHIVES, "willow", (changed,))
    said = []
    result = prepare("willow", root=tmp_path / "root", report=said.append)
    assert len(result.folders) == 1
    assert any("gone.zip" in text and "failed" in text for text in said)
    assert not list((tmp_path / "root").rglob("*.zip"))  # the download itself is not kept
    failing = replace(official, urls=urls[:1])
    monkeypatch.setitem(archives.ARCHIVES, "willow", (failing,))
    assert "gone.zip" in prepare("willow", root=tmp_path / "other").missing[0]


def test_a_download_continues_where_it_stopped(tmp_path, monkeypatch):
    data = bytes(range(256)) * 8

    class Answer(io.BytesIO):
        status = 206
        headers = {"Content-Length": str(len(data) - 100)}  # noqa: RUF012

    asked = []

    def open_url(request, timeout):
        asked.append(request.headers.get("Range"))
        return Answer(data[100:])

    monkeypatch.setattr("urllib.request.urlopen", open_url)
    (tmp_path / "file.part").write_bytes(data[:100])
    assert download(["http://example.org/file"], tmp_path / "file", largest=len(data)) == []
    assert asked == ["bytes=100-"]
    assert (tmp_path / "file").read_bytes() == data


def test_a_connection_that_ends_early_is_a_failure(tmp_path, monkeypatch):
    class Answer(io.BytesIO):
        status = 200
        headers = {"Content-Length": "1000"}  # noqa: RUF012

    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: Answer(b"0" * 10))
    failures = download(["http://example.org/file"], tmp_path / "file", largest=1000)
    assert "after 10 of 1000 bytes" in failures[0]
    assert not (tmp_path / "file").exists()


def test_an_address_that_sends_without_end_is_left(tmp_path, monkeypatch):
    class Endless(io.RawIOBase):
        status, headers, sent = 200, {}, 0

        def read(self, size=-1):
            self.sent += 1
            assert self.sent < 10, "it was read far beyond the limit"
            return bytes(size)

    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: Endless())
    failures = download(["http://example.org/file"], tmp_path / "file", largest=3 * 2**20)
    assert "sends more than 3 MB" in failures[0]
    assert sum(one.stat().st_size for one in tmp_path.iterdir()) == 0


def write_bomb(path, name, size):
    """An archive of one member, a thousandth of the size that it unpacks to."""
    path.parent.mkdir()
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open(name, "w") as member:
            for _ in range(size // 2**20):
                member.write(bytes(2**20))
    else:
        with tarfile.open(path, "w:gz") as archive:
            info = tarfile.TarInfo(name)
            info.size = size
            archive.addfile(info, io.BytesIO(bytes(size)))


@pytest.mark.parametrize(
    ("name", "number", "member"),
    [
        ("willow", 0, "WILLOW-ObjectClass/Car/a.png"),
        ("pascal-voc", 0, "VOCdevkit/VOC2011/JPEGImages/a.jpg"),
        ("pascal-voc", 1, "annotations/car/a.xml"),
    ],
)
def test_no_archive_writes_much_more_than_its_data_set_has(tmp_path, monkeypatch, name, number, member):
    official = sources.ARCHIVES[name][number]
    assert official.largest <= 4 * 2**30
    small = replace(official, largest=2**20)  # a bomb against the bound itself would take long to write
    monkeypatch.setitem(archives.ARCHIVES, name, (small,))
    write_bomb(tmp_path / "mirror" / official.file, member, 8 * 2**20)
    assert (tmp_path / "mirror" / official.file).stat().st_size < 2**16
    with pytest.raises(ValueError, match=rf"cannot unpack .*{official.file}: it holds more than 1 MB, so it is not"):
        prepare(name, mirror=tmp_path / "mirror", root=tmp_path / "root")
    assert list_files(tmp_path / "root") == []
    monkeypatch.setitem(archives.ARCHIVES, name, (replace(official, largest=2**10),))
    with pytest.raises(ValueError, match=rf"{official.file} has 0 MB; .*so it is not what was meant"):
        prepare(name, mirror=tmp_path / "mirror", root=tmp_path / "root")


def test_what_is_not_the_known_copy_is_said_or_refused(tmp_path, willow_mirror, monkeypatch):
    """A flipped byte in a zip is an error; a tar has no checksums of its own, so that its counts must tell."""
    source = next(willow_mirror.rglob("*.zip"))
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    monkeypatch.setitem(archives.ARCHIVES, "willow", (replace(sources.ARCHIVES["willow"][0], known=(digest,)),))
    assert "(a known copy)" in prepare("willow", mirror=willow_mirror, root=tmp_path / "right").messages[0]
    flip_byte(source, b"IDAT")
    with pytest.raises(ValueError, match=r"cannot unpack .*\.zip: Bad CRC-32"):
        prepare("willow", mirror=willow_mirror, root=tmp_path / "wrong")
    assert list_files(tmp_path / "wrong") == []
    voc = make_voc(tmp_path / "voc", VOC_TRAIN)
    pictures = next(voc.rglob("*.tar"))
    digest = hashlib.md5(pictures.read_bytes()).hexdigest()
    flip_byte(pictures, b"JFIF")
    official = sources.ARCHIVES["pascal-voc"]
    monkeypatch.setitem(archives.ARCHIVES, "pascal-voc", (replace(official[0], known=(digest,)), *official[1:]))
    found = prepare("pascal-voc", mirror=voc, root=tmp_path / "voc-root")
    assert "not a known copy, so judge it by its counts" in found.messages[0]
    assert json.loads((found.folders[0] / RECORD).read_text())["known"] is False


def flip_byte(path, after):
    """Change a byte behind the first place where some bytes stand."""
    content = bytearray(path.read_bytes())
    content[content.index(after) + len(after) + 2] ^= 1
    path.write_bytes(content)


def test_resolve_takes_roots_mirrors_archives_and_unpacked_copies(tmp_path, willow_mirror, monkeypatch):
    with pytest.raises(FileNotFoundError, match="quadmatch data prepare willow"):
        resolve("willow", None)
    archive = next(willow_mirror.rglob("*.zip"))
    packed = resolve("willow", willow_mirror)
    assert packed == resolve("willow", archive) == resolve("willow", None)
    assert packed == resolve("willow", tmp_path / "default")
    assert packed == resolve("willow", tmp_path / "default" / "willow")
    unpacked = write_files(tmp_path / "unpacked", make_willow_files(2))
    assert resolve("willow", unpacked) == [unpacked]
    with pytest.raises(FileNotFoundError, match="nowhere"):
        resolve("willow", tmp_path / "nowhere")


def test_an_unpacked_copy_beside_its_archive_is_used(tmp_path, willow_mirror):
    write_files(willow_mirror, make_willow_files(2))
    assert resolve("willow", willow_mirror) == [willow_mirror]
    assert not (tmp_path / "default").exists()


def test_prepare_refers_to_an_unpacked_mirror(tmp_path):
    unpacked = write_files(tmp_path / "unpacked", make_willow_files(2))
    result = prepare("willow", mirror=unpacked, root=tmp_path / "root")
    assert result.folders == (unpacked.resolve(),)
    assert resolve("willow", tmp_path / "root") == [unpacked.resolve()]


def test_the_environment_names_a_mirror(tmp_path, willow_mirror, monkeypatch):
    monkeypatch.setenv("QUADMATCH_MIRROR", str(willow_mirror))
    assert resolve("willow", None)[0].is_relative_to(tmp_path / "default")


def test_a_damaged_record_is_named(tmp_path, willow_mirror):
    part = prepare("willow", mirror=willow_mirror).folders[0]
    (part / RECORD).write_text("{")
    with pytest.raises(ValueError, match=r"part\.json is damaged"):
        resolve("willow", None)
