"""Soft Frank–Wolfe at any temperature and magnitude: finite values and finite gradients.

QUADMATCH_FUZZ_CALLS says how many random calls are made, a hundredth of it at least.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch

from quadmatch.solvers.linear.projection import project
from quadmatch.solvers.linear.sinkhorn import sinkhorn
from quadmatch.solvers.quadratic.frank_wolfe import frank_wolfe

CALLS = int(os.environ.get("QUADMATCH_FUZZ_CALLS", "0")) // 100 or 30


def draw(rng: np.random.Generator, kind: torch.dtype, magnitude: float, *shape: int) -> torch.Tensor:
    values = torch.tensor(rng.normal(size=shape) * magnitude)
    if rng.random() < 0.3:
        values = values * torch.tensor(10.0 ** rng.uniform(-20, 20, shape))
    return values.clamp(-1e36, 1e36).to(kind).requires_grad_()


def run(rng: np.random.Generator, name: str, kind: torch.dtype) -> tuple[torch.Tensor, list[torch.Tensor]]:
    batch, n, m = rng.integers(1, 6, 3).tolist()
    temperature, magnitude = 10.0 ** rng.uniform(-6, 6), 10.0 ** rng.uniform(-30, 30)
    rows, columns = (torch.tensor(rng.random((batch, size)) < 0.8) for size in (n, m))
    mask = rows[:, :, None] & columns[:, None] if rng.random() < 0.6 else None
    unary, source, target = (draw(rng, kind, magnitude, batch, *shape) for shape in ((n, m), (n, n), (m, m)))
    if name == "project":
        return project(unary.abs(), mask, iterations=5), [unary]
    if name == "sinkhorn":
        return sinkhorn(unary, mask, temperature=temperature, iterations=6), [unary]
    if name == "slack":
        slack = draw(rng, kind, magnitude, batch, n), draw(rng, kind, magnitude, batch, m)
        return sinkhorn(unary, mask, temperature=temperature, iterations=6, slack=slack), [unary, *slack]
    options = {"line": {"step": "line_search"}, "shifted": {"direction": "shifted"}, "entropic": {}}[name]
    weight = float(rng.choice([0.1, 0.5, 1.0]))
    matrices = [unary, source, target]
    return frank_wolfe(*matrices, mask, weight=weight, outer=2, inner=2, temperature=temperature, **options), matrices


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["sinkhorn", "slack", "project", "entropic", "shifted", "line"])
def test_values_and_gradients_are_finite(name: str, kind: torch.dtype) -> None:
    rng = np.random.default_rng(4)
    for _ in range(CALLS):
        found, inputs = run(rng, name, kind)
        assert found.dtype == kind
        assert torch.isfinite(found).all()
        weights = torch.tensor(rng.normal(size=found.shape), dtype=kind)
        for gradient in torch.autograd.grad((found * weights).sum(), inputs, allow_unused=True):
            assert gradient is None or torch.isfinite(gradient).all()


def test_large_single_numbers_give_what_double_ones_give() -> None:
    generator = torch.Generator().manual_seed(0)
    matrices = [torch.rand(1, 4, 4, generator=generator) * 1e15 for _ in range(3)]
    found = frank_wolfe(*matrices, temperature=1e28)
    torch.testing.assert_close(found.double(), frank_wolfe(*(one.double() for one in matrices), temperature=1e28))


def test_a_derivative_beyond_single_precision_is_its_largest_number() -> None:
    """In hundreds; at this temperature the derivatives by the scores are about 1e40, and were not a number."""
    unary = [[22, -59, 220, -43], [9, 195, -132, 103], [-192, 53, 248, 149], [-129, -13, 24, -60], [-147, -141, 22, -7]]
    source = [
        [-41, -131, -41, 110, -33],
        [-47, -92, -98, 193, 48],
        [18, -173, 46, -142, -108],
        [136, 94, -55, -25, 7],
        [205, 90, -143, -41, -188],
    ]
    target = [[-144, 32, -18, -34], [66, -195, -13, 258], [151, -28, 60, -105], [-341, -131, 43, 215]]
    inputs = [torch.tensor([one], dtype=torch.float32).mul(100).requires_grad_() for one in (unary, source, target)]
    found = frank_wolfe(*inputs, outer=2, inner=2, temperature=1.8315e-5, step="line_search")
    gradients = torch.autograd.grad(found.square().sum(), inputs)
    assert all(torch.isfinite(one).all() for one in gradients)
    assert gradients[0].abs().max() == torch.finfo(torch.float32).max


def test_a_derivative_by_the_smallest_numbers_is_finite() -> None:
    values = torch.tensor([[[2.0e-43, 7.1e-44, 0.0]]], requires_grad=True)
    found = project(values, torch.tensor([[[True, True, False]]]), iterations=5)
    (gradient,) = torch.autograd.grad((found * torch.tensor([1.0, -1.0, 0.0])).sum(), values)
    assert torch.isfinite(gradient).all()
    assert gradient[0, 0, 0] == torch.finfo(torch.float32).max
