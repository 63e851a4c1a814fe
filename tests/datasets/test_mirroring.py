from dataclasses import replace

import numpy as np
import pytest
import torch
from made_objects import make_objects
from tiny_experiment import tiny_experiment, write_tiny

from quadmatch.datasets.annotation import Annotation, frame_points, load_crop
from quadmatch.datasets.mirroring import add_mirrored, swap_sides
from quadmatch.datasets.pairs import group_by_category
from quadmatch.features.store_features import name_entry
from quadmatch.models.runs import create_run
from quadmatch.training.fit import build_trainer


@pytest.mark.parametrize(
    ("name", "swapped"),
    [
        ("L_Eye", "R_Eye"),
        ("R_B_Elbow", "L_B_Elbow"),
        ("Left_Wing_Base", "Right_Wing_Base"),
        ("Seat_Right_Back", "Seat_Left_Back"),
        ("left ear", "right ear"),
        ("LEFT-KNEE", "RIGHT-KNEE"),
        ("Nose", "Nose"),
        ("Leg_Center", "Leg_Center"),
        ("Bright_Lamp", "Bright_Lamp"),
        ("7", "7"),
    ],
)
def test_names_of_sides_are_exchanged(name, swapped):
    assert swap_sides(name) == swapped
    assert swap_sides(swapped) == name


def test_a_mirror_shows_each_keypoint_where_its_pixels_are():
    pixels = np.zeros((80, 120, 3), dtype=np.uint8)
    pixels[50:54, 70:74, 0] = 255  # a red spot around (72, 52), a green one around (50, 30)
    pixels[28:32, 48:52, 1] = 255
    points = np.array([(72.0, 52.0), (50.0, 30.0)])
    box = (40.0, 20.0, 100.0, 70.0)
    one = Annotation("cat/1", "cat", lambda: pixels, box, ("L_Eye", "Nose"), points)
    _, mirrored = add_mirrored([one])
    assert mirrored.names == ("R_Eye", "Nose")
    crop, seen = load_crop(mirrored, 128)
    plain, before = load_crop(one, 128)
    np.testing.assert_array_equal(crop, plain[:, ::-1])
    np.testing.assert_allclose(seen[:, 0], 128 - before[:, 0])
    np.testing.assert_array_equal(seen[:, 1], before[:, 1])
    y, x = np.mgrid[:128, :128] + 0.5
    for channel, point in enumerate(seen):
        weight = crop[..., channel].astype(float)
        np.testing.assert_allclose(point, [(x * weight).sum(), (y * weight).sum()] / weight.sum(), atol=0.2)


def test_what_is_kept_of_a_mirrored_object_has_its_own_name():
    pixels = np.zeros((10, 10, 3), dtype=np.uint8)
    one = Annotation("cat/1", "cat", lambda: pixels, None, ("Nose",), np.array([(5.0, 5.0)]))
    assert name_entry(one) != name_entry(replace(one, mirrored=True))


def test_sides_decide_whether_a_mirrored_object_stays_in_its_category():
    cats = [replace(one, category="cat", names=("L_Eye", "R_Eye", "Nose")) for one in three_points()]
    ducks = [replace(one, name="duck" + one.name, category="duck") for one in three_points()]
    both = add_mirrored([*cats, *ducks])
    groups = {group.category: group for group in group_by_category(both)}
    assert set(groups) == {"cat", "duck", "duck, mirrored"}
    assert len(groups["cat"].names) == 2 * len(cats)
    assert len(groups["duck"].names) == len(groups["duck, mirrored"].names) == len(ducks)
    assert both[: len(cats)] == cats
    again = add_mirrored(both)[-1]  # A mirrored mirror image is what it was.
    np.testing.assert_array_equal(frame_points(again), frame_points(ducks[-1]))


def three_points():
    objects = [one for one in make_objects(40) if len(one.names) >= 3]
    return [replace(one, names=one.names[:3], points=one.points[:3]) for one in objects]


def test_training_sees_mirrored_objects_and_validation_does_not(tmp_path):
    tiny = write_tiny(tmp_path)
    said: list[str] = []
    trainers = []
    for flip in ("false", "true"):
        experiment = tiny_experiment(tiny, [f"training.flip={flip}", "training.validate_every=1"])
        run = create_run(tmp_path / flip, experiment, "float32", 1)
        trainers.append(build_trainer(run, said.append))
    plain, mirrored = trainers
    assert len(mirrored.sampler.names) == 2 * len(plain.sampler.names) == len(set(mirrored.sampler.names))
    assert [one.name for one in mirrored.validation] == [one.name for one in plain.validation]
    assert not any(one.mirrored for one in mirrored.validation)
    drawn = [[trainer.sampler.sample(step)[1].pairs.source.points for step in range(10)] for trainer in trainers]
    assert not all(torch.equal(one, other) for one, other in zip(*drawn))
    assert torch.isfinite(torch.tensor(mirrored.take_step(0)["loss"]))
