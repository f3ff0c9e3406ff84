"""Projected gradient descent, in torch. Imported only where torch is wanted."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional

from shiftbed.attacks.attack import Norm

__all__ = ["descend", "start_in_ball"]

#: How far rounding may carry a pixel out of the ball.
_ROUNDING = 1e-6


def descend(
    network: Callable[[torch.Tensor], torch.Tensor],
    pixels: torch.Tensor,
    labels: torch.Tensor,
    *,
    norm: Norm,
    radius: float | torch.Tensor,
    steps: int,
    step: float,
    start: torch.Tensor | None = None,
    stop_early: bool = True,
) -> torch.Tensor:
    """Return pixels in the ball around ``pixels`` at which the network's loss is large.

    ``radius`` is one number, or one per picture; ``step`` is in parts of it. With
    ``stop_early``, a picture stays as it is once the network is wrong about it.

    >>> darkness = lambda pixels: torch.stack([-pixels.mean((1, 2, 3)), pixels.mean((1, 2, 3))], 1)
    >>> grey = torch.full((1, 1, 2, 2), 0.5)
    >>> descend(darkness, grey, torch.tensor([1]), norm="linf", radius=0.1, steps=4, step=0.5,
    ...         stop_early=False).unique()
    tensor([0.4000])
    """
    radii = torch.as_tensor(radius, dtype=pixels.dtype, device=pixels.device)
    radii = radii.expand(len(pixels)).view(-1, 1, 1, 1)
    found = pixels.clone() if start is None else start.clone()
    active = torch.arange(len(pixels), device=pixels.device)
    for _ in range(steps):
        with torch.enable_grad():
            here = found[active].detach().requires_grad_()
            scores = network(here)
            right = scores.argmax(dim=1) == labels[active]
            if stop_early and not right.any():
                break
            loss = functional.cross_entropy(scores, labels[active], reduction="sum")
            [slope] = torch.autograd.grad(loss, here)
        if stop_early:
            active, here, slope = active[right], here[right], slope[right]
        around, room = pixels[active], radii[active]
        moved = here.detach() + step * room * _direction(slope, norm)
        found[active] = _into_ball(moved, around, room, norm)
    _assert_inside(found, pixels, radii, norm)
    return found


def start_in_ball(
    pixels: torch.Tensor, noise: torch.Tensor, radius: float | torch.Tensor, norm: Norm
) -> torch.Tensor:
    """Return a point of the ball for each picture, as far out as ``noise`` says.

    ``noise`` is in the ball of radius 1.
    """
    radii = torch.as_tensor(radius, dtype=pixels.dtype, device=pixels.device)
    radii = radii.expand(len(pixels)).view(-1, 1, 1, 1)
    return _into_ball(pixels + radii * noise, pixels, radii, norm)


def _direction(slope: torch.Tensor, norm: Norm) -> torch.Tensor:
    """Return the step of length 1 that the loss rises most along."""
    if norm == "linf":
        return slope.sign()
    return slope / _length(slope).clamp_min(1e-12)


def _into_ball(
    moved: torch.Tensor, around: torch.Tensor, radius: torch.Tensor, norm: Norm
) -> torch.Tensor:
    """Return the nearest pixels in the ball, then those of them in [0, 1], which are in it too."""
    change = moved - around
    if norm == "linf":
        change = change.clamp(-radius, radius)
    else:
        change = change * (radius / _length(change).clamp_min(1e-12)).clamp_max(1)
    return (around + change).clamp(0, 1)


def _length(change: torch.Tensor) -> torch.Tensor:
    length: torch.Tensor = torch.linalg.vector_norm(change, dim=(1, 2, 3), keepdim=True)
    return length


def _assert_inside(
    found: torch.Tensor, around: torch.Tensor, radius: torch.Tensor, norm: Norm
) -> None:
    change = found - around
    far = change.abs().amax((1, 2, 3)) if norm == "linf" else _length(change).flatten()
    assert bool(((found >= 0) & (found <= 1)).all()), "an attack left the range of pixels"
    assert bool((far <= radius.flatten() * (1 + 1e-4) + _ROUNDING).all()), "an attack left its ball"
