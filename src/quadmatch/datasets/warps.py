"""Smooth maps of the plane with exact inverses at points: a homography after a thin-plate spline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

Points = Float[np.ndarray, "n 2"]

GRID = np.stack(np.meshgrid(np.linspace(-1, 1, 4), np.linspace(-1, 1, 4)), -1).reshape(-1, 2)
"""Where the spline is bent."""


def _bend(square: NDArray[np.float64]) -> NDArray[np.float64]:
    """U(r) = r² log r as a function of r², with its limit 0 at 0."""
    return 0.5 * square * np.log(np.where(square > 0, square, 1.0))


@dataclass(frozen=True, eq=False)
class Warp:
    """x ↦ h(s(x)) on coordinates around [-1, 1]²: s a thin-plate spline (Bookstein 1989), h a homography."""

    homography: Float[np.ndarray, "3 3"]
    weights: Float[np.ndarray, "16 2"]
    affine: Float[np.ndarray, "3 2"]

    def apply(self, points: Points) -> Points:
        """Where the points go."""
        bent = _bend(_square(points, GRID)) @ self.weights + self.affine[0] + points @ self.affine[1:]
        return self._project(bent)[0]

    def invert(self, points: Points, iterations: int = 30) -> Points:
        """The points that go there, by Newton's method from the homography's own inverse."""
        ones = np.concatenate([points, np.ones((len(points), 1))], 1)
        start = ones @ np.linalg.inv(self.homography).T
        found = start[:, :2] / start[:, 2:]
        for _ in range(iterations):
            reached, slope = self._follow(found)
            found = found + np.linalg.solve(slope, (points - reached)[:, :, None])[:, :, 0]
        return np.asarray(found)

    def _follow(self, points: Points) -> tuple[Points, Float[np.ndarray, "n 2 2"]]:
        """Values and slopes (the derivative of value i by coordinate j)."""
        square = _square(points, GRID)
        bent = _bend(square) @ self.weights + self.affine[0] + points @ self.affine[1:]
        growth = (np.log(np.where(square > 0, square, 1.0)) + 1)[:, :, None] * (points[:, None, :] - GRID)
        inner = np.einsum("nkj,ki->nij", growth, self.weights) + self.affine[1:].T
        value, below = self._project(bent)
        outer = self.homography[:2, :2] - value[:, :, None] * self.homography[2, :2]
        return value, np.asarray(outer / below[:, :, None] @ inner)

    def _project(self, points: Points) -> tuple[Points, Float[np.ndarray, "n 1"]]:
        below = points @ self.homography[2:, :2].T + self.homography[2, 2]
        top = points @ self.homography[:2, :2].T + self.homography[:2, 2]
        return np.asarray(top / below), np.asarray(below)


def _square(points: Points, others: Float[np.ndarray, "k 2"]) -> Float[np.ndarray, "n k"]:
    """Squared distances."""
    x, y = points[:, :1] - others[:, 0], points[:, 1:] - others[:, 1]
    return np.asarray(x * x + y * y)


def fit_spline(shift: Float[np.ndarray, "16 2"]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights and affine part of the spline that moves each point of the grid by `shift`."""
    flat = np.concatenate([np.ones((len(GRID), 1)), GRID], 1)
    system = np.block([[_bend(_square(GRID, GRID)), flat], [flat.T, np.zeros((3, 3))]])
    solved = np.linalg.solve(system, np.concatenate([GRID + shift, np.zeros((3, 2))]))
    return solved[: len(GRID)], solved[len(GRID) :]


def draw_warp(numbers: Float[np.ndarray, " 40"], strength: float = 1.0) -> Warp:
    """A warp from 40 numbers in (0, 1): turned, scaled, sheared, moved, seen askew and bent."""
    signed = strength * (2 * numbers - 1)
    angle, size = 0.5 * signed[0], np.exp(0.2 * signed[1])
    turn = size * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    shear = np.array([[1.0, 0.15 * signed[2]], [0.0, np.exp(0.15 * signed[3])]])
    homography = np.eye(3)
    homography[:2, :2] = turn @ shear
    homography[:2, 2] = 0.12 * signed[4:6]
    homography[2, :2] = 0.12 * signed[6:8]
    return Warp(homography, *fit_spline(0.06 * signed[8:40].reshape(16, 2)))
