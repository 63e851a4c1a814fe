"""The corner of a house whose two walls are photographs, as one sees it walking past."""

from __future__ import annotations

from math import cos, pi, sin

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from quadmatch.datasets.photo_pairs import PicturePair, Pixels, Points
from quadmatch.datasets.photo_warps import PHOTOGRAPHS, SIDE, find_corners, load_photograph

SIZE, FOCAL = 400, 560.0
"""Pixels on a side of a picture, and from the camera to it."""
LANDMARKS = 15
"""At most, on each wall."""
PLASTER = 0.55
"""Grey of what is no wall."""


def list_wall_pairs(turn: float, *, split: str = "test", draws: int = 3, seed: int = 0) -> list[PicturePair]:
    """Pictures of each corner of two photographs before and after a turn by so many degrees."""
    files = PHOTOGRAPHS[split]
    return [
        _draw_pair((files[place], files[(place + 1) % len(files)]), turn, np.random.default_rng([seed, draw, place]))
        for place in range(len(files))
        for draw in range(draws)
    ]


def _draw_pair(walls: tuple[str, str], turn: float, rng: np.random.Generator) -> PicturePair:
    facing = rng.uniform(-8, 8)
    (picture_a, points_a), (picture_b, points_b) = (
        look(walls, facing + half, rng.uniform(-8, 8), rng.uniform(2.4, 2.9), rng.uniform(0.8, 1.2))
        for half in (-turn / 2, turn / 2)
    )
    order = rng.permutation(len(points_a))
    name = "-".join(wall.partition(".")[0] for wall in walls)
    return PicturePair(name, picture_a, points_a, picture_b, points_b[order], np.argsort(order))


def look(walls: tuple[str, str], turn: float, tilt: float, distance: float, light: float) -> tuple[Pixels, Points]:
    """The corner turned and tilted by so many degrees, and where its landmarks are; hidden ones too."""
    from scipy.ndimage import map_coordinates

    centres = np.arange(SIZE) + 0.5
    grid = np.stack([*np.meshgrid(centres, centres), np.ones((SIZE, SIZE))]).reshape(3, -1)
    picture = np.full((SIZE * SIZE, 3), PLASTER)
    points = []
    for file, side in zip(walls, (-1, 1)):
        camera = _project_wall(side, turn, tilt, distance)
        landmarks = np.pad(find_corners(file, LANDMARKS) / SIDE, ((0, 0), (0, 1)), constant_values=1) @ camera.T
        points.append(landmarks[:, :2] / landmarks[:, 2:])
        if np.linalg.det(camera) <= 0:  # Seen from behind.
            continue
        u, v, w = np.linalg.solve(camera, grid)
        seen = (w > 0) & (np.abs(u - w / 2) < w / 2) & (np.abs(v - w / 2) < w / 2)
        places = np.stack([v[seen], u[seen]]) / w[seen] * SIDE - 0.5
        photograph = load_photograph(file)
        for channel in range(3):
            picture[seen, channel] = map_coordinates(photograph[..., channel], places, order=1, mode="nearest")
    pixels = np.rint(255 * np.clip(light * picture, 0, 1)).astype(np.uint8)
    return pixels.reshape(SIZE, SIZE, 3), np.concatenate(points)


def _project_wall(side: int, turn: float, tilt: float, distance: float) -> Float[np.ndarray, "3 3"]:
    """From the unit square of a photograph to pixels, homogeneous: both walls run back from the corner at 45°."""
    yaw, pitch = turn * pi / 180, tilt * pi / 180
    round_axis = np.array([[cos(yaw), 0, sin(yaw)], [0, 1, 0], [-sin(yaw), 0, cos(yaw)]])
    up_down = np.array([[1, 0, 0], [0, cos(pitch), -sin(pitch)], [0, sin(pitch), cos(pitch)]])
    corner, back = np.array([0.0, -0.5, -0.35]), np.array([side * cos(pi / 4), 0.0, sin(pi / 4)])
    # The left wall's photograph ends at the corner, the right one's begins there.
    start, along = (corner + back, -back) if side < 0 else (corner, back)
    wall: NDArray[np.float64] = up_down @ round_axis @ np.stack([along, [0.0, 1.0, 0.0], start], axis=1)
    wall[2, 2] += distance
    return np.array([[FOCAL, 0, SIZE / 2], [0, FOCAL, SIZE / 2], [0, 0, 1]]) @ wall
