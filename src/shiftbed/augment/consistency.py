"""The loss that asks a network for the same answer on several versions of a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shiftbed.errors import InputError

if TYPE_CHECKING:
    import torch

__all__ = ["jensen_shannon"]

#: Below this a probability is taken for this, so that its logarithm is finite.
_LEAST = 1e-7


def jensen_shannon(*logits: torch.Tensor) -> torch.Tensor:
    """Return the Jensen-Shannon divergence of several batches of logits, (N, classes) each.

    It is the mean, over the batches, of the divergence of their probabilities from the mean of
    them all, and the mean over the pictures. AugMix weights it 12 for ImageNet and CIFAR.

    >>> import torch
    >>> sure = torch.tensor([[50.0, 0.0]])
    >>> bool(jensen_shannon(sure, sure, sure).abs() < 1e-6)
    True
    >>> round(float(jensen_shannon(sure, -sure)), 4)  # ln 2: nothing in common
    0.6931
    """
    if len(logits) < 2:
        raise InputError(f"a divergence is between 2 or more answers, but {len(logits)} were given")
    import torch
    from torch.nn import functional

    shapes = {tuple(one.shape) for one in logits}
    if len(shapes) > 1 or logits[0].ndim != 2:
        raise InputError(
            f"the answers have shapes {sorted(shapes)}; expected one shape (N, classes) for all"
        )
    probabilities = [functional.softmax(one, dim=1) for one in logits]
    mean = torch.stack(probabilities).mean(dim=0).clamp(_LEAST, 1).log()
    total = sum(
        (functional.kl_div(mean, one, reduction="batchmean") for one in probabilities),
        start=torch.zeros((), device=mean.device),
    )
    return total / len(logits)
