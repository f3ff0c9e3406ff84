"""What a training makes small: one function for each way of training against a shift."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from shiftbed.attacks.descent import descend, start_in_ball
from shiftbed.augment import jensen_shannon
from shiftbed.train.recipe import Recipe

__all__ = ["LOSSES", "VIEWS"]

#: network, pixels in [0, 1] (N, views, C, H, W), labels, recipe -> the loss, and the logits
#: that the accuracy in training is counted from.
_Loss = Callable[[nn.Module, torch.Tensor, torch.Tensor, Recipe], tuple[torch.Tensor, torch.Tensor]]


def _plain(
    network: nn.Module, views: torch.Tensor, labels: torch.Tensor, recipe: Recipe
) -> tuple[torch.Tensor, torch.Tensor]:
    logits = network(views[:, 0])
    return _cross_entropy(logits, labels, recipe), logits


def _adversarial(
    network: nn.Module, views: torch.Tensor, labels: torch.Tensor, recipe: Recipe
) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss at the worst pixels that some steps find in a ball of a random radius.

    No step: at a point of the ball. One: FGSM from such a point. More: projected descent.
    """
    pixels = views[:, 0]
    radius = torch.full((len(pixels),), recipe.eps / 255, device=pixels.device)
    if recipe.eps_drawn:
        radius = radius * torch.rand_like(radius)
    start = start_in_ball(pixels, 2 * torch.rand_like(pixels) - 1, radius, "linf")
    # The slopes of pixels are not to be shared between processes.
    bare = network.module if isinstance(network, DistributedDataParallel) else network
    bare.eval()  # so that attacked pictures leave no trace in the statistics of batches
    worst = descend(
        bare,
        pixels,
        labels,
        norm="linf",
        radius=radius,
        steps=recipe.steps,
        # One step goes to the edge of the ball; more reach 2.5 times as far together.
        step=1.25 if recipe.steps == 1 else 2.5 / max(recipe.steps, 1),
        start=start,
        stop_early=False,
    )
    bare.train()
    logits = network(worst)
    return _cross_entropy(logits, labels, recipe), logits


def _stability(
    network: nn.Module, views: torch.Tensor, labels: torch.Tensor, recipe: Recipe
) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss, and how far the answers to a noisy copy are from those to the picture."""
    pixels = views[:, 0]
    noisy = (pixels + recipe.sigma * torch.randn_like(pixels)).clamp(0, 1)
    logits, moved = network(torch.cat([pixels, noisy])).chunk(2)
    told, heard = functional.log_softmax(logits, 1), functional.log_softmax(moved, 1)
    apart = functional.kl_div(heard, told, log_target=True, reduction="batchmean")
    return _cross_entropy(logits, labels, recipe) + recipe.weight * apart, logits


def _consistency(
    network: nn.Module, views: torch.Tensor, labels: torch.Tensor, recipe: Recipe
) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss on the plain view, and the Jensen-Shannon divergence between all views' answers."""
    every = network(views.transpose(0, 1).flatten(0, 1)).chunk(views.shape[1])
    apart = jensen_shannon(*every)
    return _cross_entropy(every[0], labels, recipe) + recipe.weight * apart, every[0]


def _cross_entropy(logits: torch.Tensor, labels: torch.Tensor, recipe: Recipe) -> torch.Tensor:
    return functional.cross_entropy(logits, labels, label_smoothing=recipe.smoothing)


LOSSES: dict[str, _Loss] = {
    "plain": _plain,
    "adversarial": _adversarial,
    "stability": _stability,
    "consistency": _consistency,
}
#: How many views of a picture a loss wants; 1 for the others.
VIEWS = {"consistency": 3}
