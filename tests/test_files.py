"""Files appear whole or not at all; what is no regular file is written into and stays what it is."""

import errno
import json
import os
import stat
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from quadmatch.cli import app
from quadmatch.files import check_target, fill_folder, remove_folder, replace_file, take_lock, write_file, write_json
from quadmatch.own_images import bulk
from quadmatch.own_images.answer import Settings
from quadmatch.own_images.pair_lists import Row


@pytest.fixture
def pipe(tmp_path):
    """A FIFO with a reader; what was read is what the list holds at the end."""
    path, read = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()), daemon=True)
    reader.start()
    yield path, reader, read
    while reader.is_alive():  # Nobody wrote: let the reader go, as soon as it is there.
        with suppress(OSError):
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        reader.join(0.01)


def test_a_pipe_and_a_device_are_written_into(tmp_path, pipe) -> None:
    path, reader, read = pipe
    write_json(path, {"a": 1})
    reader.join(timeout=120)
    assert json.loads(read[0]) == {"a": 1}
    assert stat.S_ISFIFO(path.stat().st_mode)
    nothing = tmp_path / "nothing"
    nothing.symlink_to(os.devnull)
    write_file(nothing, b"gone")
    assert nothing.is_symlink()
    assert stat.S_ISCHR(nothing.stat().st_mode)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["nothing", "pipe"]


def test_a_link_to_a_file_stays_a_link(tmp_path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"


def test_a_link_to_nothing_yet_is_written_through(tmp_path) -> None:
    link, place = tmp_path / "link", tmp_path / "later" / "file"
    link.symlink_to(place)
    with pytest.raises(FileNotFoundError, match=r"cannot write .*link: there is no folder .*later; make it first"):
        write_file(link, b"new")
    write_file(link, b"new", make_folder=True)
    assert link.is_symlink()
    assert place.read_bytes() == b"new"
    assert sorted(one.name for one in place.parent.iterdir()) == ["file"]


@pytest.mark.parametrize("option", ["--out", "--draw"])
def test_a_link_to_itself_stays_and_is_named(tmp_path, option) -> None:
    loop = tmp_path / "loop.png"
    loop.symlink_to(loop)
    with pytest.raises(ValueError, match=r"cannot write .*loop\.png.*symbolic links"):
        write_file(loop, b"new")
    done = CliRunner().invoke(app, ["match", "none.jpg", "none.jpg", option, str(loop)])
    assert done.output.startswith("error: cannot write ")
    assert "loop.png" in done.output
    assert loop.is_symlink()
    assert list(tmp_path.iterdir()) == [loop]


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000])
def test_a_name_that_no_file_can_have_is_told(tmp_path, name) -> None:
    with pytest.raises(ValueError, match=r"^cannot write '.*: .*(null|too long)") as caught:
        write_file(tmp_path / name, b"")
    assert len(str(caught.value)) < 300
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_told_with_the_files_name(tmp_path, monkeypatch) -> None:
    with pytest.raises(OSError, match=r"No space left on device: '/dev/full'"):
        write_file("/dev/full", b"x")
    rows = [Row(1, ("a.png", None, None), ("b.png", None, None))]
    lines = lambda work, report: (part for part in [[{"row": 1}]])  # noqa: E731
    with pytest.raises(OSError, match=r"No space left on device: '/dev/full'"):
        bulk.match_many(rows, tmp_path, Path("/dev/full"), lambda *_: None, Settings(), engine=lines)
    path = tmp_path / "file"

    def fail(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=r"No space left on device: '.*/file'"):
        write_file(path, b"x")
    assert not list(tmp_path.iterdir())


def test_a_file_that_may_not_be_written_is_named_itself(tmp_path, monkeypatch) -> None:
    def fail(source: object, target: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", os.fspath(source))

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(PermissionError, match=r"Permission denied: '.*/file'"):
        write_file(tmp_path / "file", b"x")


def test_a_missing_folder_is_said_unless_it_is_to_be_made(tmp_path) -> None:
    path = tmp_path / "none" / "file"
    for write in (lambda: write_file(path, b""), lambda: check_target(path)):
        with pytest.raises(FileNotFoundError, match=r"there is no folder .*none; make it first"):
            write()
    assert not path.parent.exists()
    assert write_file(path, b"x", make_folder=True).read_bytes() == b"x"
    with pytest.raises(IsADirectoryError, match="name a file in it"):
        write_file(path.parent, b"")


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, failing) -> None:
    path = write_file(tmp_path / "file", b"old")

    def fail(*arguments: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(OSError, match="disk full"):
        write_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_streamed_file_that_breaks_off_never_appears(tmp_path) -> None:
    def write(break_off: bool) -> None:
        with replace_file(tmp_path / "file") as file:
            file.write(b"half")
            assert not (tmp_path / "file").exists()
            if break_off:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(True)
    assert not list(tmp_path.iterdir())
    write(False)
    assert (tmp_path / "file").read_bytes() == b"half"


def fill(folder: Path, text: str, **options: bool) -> None:
    with fill_folder(folder, **options) as partial:
        assert partial != folder
        (partial / "file").write_text(text)


def test_a_folder_appears_whole_and_the_first_one_stays(tmp_path) -> None:
    folder = tmp_path / "new" / "folder"
    fill(folder, "first")
    with pytest.raises(OSError, match=r"not empty|exists"):
        fill(folder, "second")
    fill(folder, "third", keep=True)
    assert (folder / "file").read_text() == "first"
    assert list(folder.parent.iterdir()) == [folder]
    remove_folder(folder)
    assert not list(folder.parent.iterdir())


@pytest.mark.parametrize("option", ["--out", "--draw", "--heat-map"])
def test_match_refuses_a_missing_folder_before_it_reads_a_picture(tmp_path, option) -> None:
    words = ["match", "none.jpg", "none.jpg", option, str(tmp_path / "none" / "file.png")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    assert "there is no folder" in done.output


def test_evaluate_refuses_a_missing_folder_before_it_begins(tmp_path) -> None:
    words = ["evaluate", "no-model", "--json", str(tmp_path / "none" / "file.json")]
    assert "there is no folder" in CliRunner().invoke(app, words).output


def test_a_locked_file_is_refused_until_it_is_closed(tmp_path) -> None:
    path = tmp_path / "file"
    with path.open("ab") as first, path.open("ab") as second:
        take_lock(first, "taken")
        with pytest.raises(BlockingIOError, match="taken"):
            take_lock(second, "taken")
        first.close()
        take_lock(second, "taken")
    with open(os.devnull, "ab") as device, open(os.devnull, "ab") as again:
        take_lock(device, "taken")
        take_lock(again, "taken")


def test_many_matches_resume_nothing_from_a_pipe(tmp_path, pipe) -> None:
    path, _, read = pipe
    assert bulk.resume(path, [], Settings()) == ([], None)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        bulk.match_many([], tmp_path, tmp_path / "none" / "out.jsonl", lambda *_: None, Settings())
    assert not read
