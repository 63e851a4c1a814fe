import json

import pytest
from archive_fixtures import VOC_TRAIN, draw_picture, make_voc, write_files
from typer.testing import CliRunner

from quadmatch.commands.data import app
from quadmatch.datasets import DATASETS
from quadmatch.datasets.survey import compare, survey


@pytest.fixture(autouse=True)
def _own_root(tmp_path, monkeypatch):
    monkeypatch.setenv("QUADMATCH_DATA", str(tmp_path / "default"))
    monkeypatch.delenv("QUADMATCH_MIRROR", raising=False)


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


def test_prepare_reports_counts_and_what_is_missing(tmp_path):
    mirror = make_voc(tmp_path / "mirror", VOC_TRAIN)
    result = run("prepare", "pascal-voc", "--mirror", mirror, "--root", tmp_path / "root")
    assert result.exit_code == 0
    rows = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines() if line.strip()[:1].isalpha()}
    assert rows["aeroplane"] == ["2", "0", "0", "9"]
    assert rows["all"][:3] == ["8", "0", "0"]
    assert "test: pascal-voc: of the 4 objects for testing" in result.stderr
    assert "trainval: 8 objects where the complete data set has 7020" in result.stderr
    again = run("check", "pascal-voc", "--root", tmp_path / "root")
    assert again.exit_code == 0
    assert again.stdout in result.stdout


def test_prepare_looks_where_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.setenv("QUADMATCH_MIRROR", str(make_voc(tmp_path / "mirror", VOC_TRAIN)))
    result = run("prepare", "pascal-voc", "--root", tmp_path / "root")
    assert result.exit_code == 0
    assert "fetching" not in result.output
    assert run("check", "pascal-voc", "--root", tmp_path / "root").exit_code == 0


def test_a_part_that_is_missing_is_named_and_fails_only_when_nothing_is_left(tmp_path):
    mirror = make_voc(tmp_path / "mirror", VOC_TRAIN)
    (mirror / "voc2011_pairs.npz").unlink()
    result = run("prepare", "pascal-voc", "--mirror", mirror)
    assert "missing: voc2011_pairs.npz (the field's split): not under" in result.stderr
    assert result.exit_code == 1
    (tmp_path / "empty").mkdir()
    result = run("prepare", "willow", "--mirror", tmp_path / "empty")
    assert result.exit_code == 1
    assert "missing: WILLOW-ObjectClass_dataset.zip" in result.stderr
    result = run("prepare", "willow", "--mirror", tmp_path / "nowhere")
    assert result.exit_code == 1
    assert "nowhere" in result.stderr


def test_check_prints_json(tmp_path):
    result = run("check", "photo-warps", "--json")
    found = json.loads(result.stdout)
    assert [one["split"] for one in found] == ["train", "validation", "test"]
    assert all(one["objects"] and not one["problems"] for one in found)
    nothing = run("check", "willow", "--root", tmp_path, "--json")
    assert nothing.exit_code == 1
    assert "no folder with Car" in json.loads(nothing.stdout)[0]["problems"][0]


def test_check_fails_when_nothing_is_usable(tmp_path):
    result = run("check", "willow", "--root", tmp_path)
    assert result.exit_code == 1
    assert "train, validation, test: no folder with Car" in result.stderr
    assert run("check", "photo-warps").exit_code == 0


@pytest.mark.parametrize("command", ["prepare", "check"])
def test_unknown_names_are_refused(command):
    result = run(command, "imagenet")
    assert result.exit_code == 2
    assert "willow" in result.stderr


def test_broken_pictures_are_named(tmp_path):
    files = {f"{name}.png": draw_picture(0) for name in "abc"} | {f"{name}.csv": b"x,1,2" for name in "abc"}
    write_files(tmp_path, files)
    (tmp_path / "b.png").write_bytes(draw_picture(0)[:-60])
    assert run("check", "folder", "--root", tmp_path).stderr.count("b.png") == 0
    result = run("check", "folder", "--root", tmp_path, "--pictures")
    assert "b.png" in result.stderr
    assert result.exit_code == 0


def test_survey_and_compare():
    with pytest.raises(ValueError, match="imagenet"):
        survey("imagenet")
    surveys = survey("photo-warps", views=1)
    assert [sum(one.objects.values()) for one in surveys] == [8, 2, 4]
    assert compare("photo-warps", surveys) == []
    assert set(DATASETS) == {"willow", "pascal-voc", "folder", "photo-warps"}
