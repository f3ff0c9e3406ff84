"""The trainer: one loop over batches, which a kill may stop anywhere.

All that is drawn belongs to the seed and to the place in the training, and the rate is a function
of the step. So a checkpoint is the weights, the optimiser's state and a number, and a training
that goes on from one ends with the bits of a training that was never stopped. Devices, several
machines and mixed precision are the business of Hugging Face's Accelerate.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

from shiftbed.data import ImageSet, digest
from shiftbed.data.subset import of_classes
from shiftbed.errors import InputError, MissingExtraError
from shiftbed.models._torch import Normalised
from shiftbed.models.sources.torch import architecture
from shiftbed.results._files import write_atomically
from shiftbed.train.card import Card, write_card
from shiftbed.train.losses import LOSSES, VIEWS
from shiftbed.train.pictures import Batches, Shown, mean_and_std, shown
from shiftbed.train.recipe import Recipe
from shiftbed.train.source import made_of, share_of
from shiftbed.train.start import fill_from

__all__ = ["Progress", "fit"]

_CHECKPOINT = "checkpoint.pt"
_EVALUATED_AT_ONCE = 256


@dataclass(frozen=True)
class Progress:
    """Where a training is."""

    step: int
    steps: int
    epoch: int
    loss: float
    rate: float


Watch = Callable[[Progress], None]


def fit(
    recipe: Recipe,
    images: ImageSet,
    output: Path,
    *,
    test: ImageSet | None = None,
    device: str = "auto",
    workers: int = 0,
    minutes: float = 5.0,
    watch: Watch = lambda progress: None,
) -> Card:
    """Train as a recipe says, and leave the weights and the run card in ``output``.

    The same call goes on after an interruption. ``test`` is scored after each pass, and does
    not change what is learnt. A checkpoint is written after each pass, and every ``minutes``.
    """
    accelerator = _accelerator(recipe, device)
    if recipe.classes:
        images = of_classes(images, recipe.classes, f"{images.name}.classes")
        if test is not None:
            test = of_classes(test, recipe.classes, f"{test.name}.classes")
    if recipe.needs_start and recipe.start is None:
        raise InputError(
            f"the recipe {recipe.name} goes on from weights, and none were given; say where they "
            "are with --start: a checkpoint, or the directory of a training"
        )
    pictures = _shown(images, recipe)
    tested = None
    if test is not None:
        if tuple(test.classes) != tuple(images.classes):
            raise InputError(
                f"{test.name} has other classes than {images.name}, or in another order; "
                "a test during training needs the same"
            )
        tested = _shown(test, replace(recipe, size=pictures.side, channels=pictures.channels))
    batch = min(recipe.batch, len(pictures))
    if batch % accelerator.num_processes:
        raise InputError(
            f"a batch of {batch} pictures cannot be shared by {accelerator.num_processes} "
            "processes; choose a multiple of their number"
        )
    torch.manual_seed(recipe.seed)
    own = architecture(recipe.network, len(images.classes), pictures.channels)
    mean, std = mean_and_std(pictures)
    if recipe.start is not None:
        fill_from(own.network, recipe.start, pictures.channels)
    network: nn.Module = Normalised(own.network, mean, std, torch.float32)
    _check_takes(network, pictures, recipe)
    card = Card.of(recipe, pictures, test, mean, std, own.network, batch)
    finished = Card.finished(output, card.identity)
    if finished is not None:
        return finished
    optimiser = _optimiser(recipe, network)
    per_pass = len(pictures) // batch
    steps = recipe.epochs * per_pass
    convert: Any = network.to  # its annotations know no memory_format
    convert(memory_format=torch.channels_last)
    network, optimiser = accelerator.prepare(network, optimiser)
    state = _State(card.identity)
    state.load(output, accelerator, network, optimiser)
    saved = time.monotonic()
    while state.step < steps:
        epoch, start = divmod(state.step, per_pass)
        begun = time.monotonic()
        loader = accelerator.prepare_data_loader(
            DataLoader(
                pictures,
                batch_sampler=Batches(len(pictures), batch, recipe.seed, epoch, start),
                collate_fn=_as_it_is,
                num_workers=workers,
            )
        )
        network.train()
        for views, labels in loader:
            _seed(recipe.seed, state.step, accelerator.process_index)
            rate = _rate(recipe, state.step, per_pass)
            for group in optimiser.param_groups:
                group["lr"] = rate
            loss, right = _step(recipe, network, optimiser, accelerator, views, labels)
            if not math.isfinite(loss):
                raise InputError(
                    f"the loss is {loss} at step {state.step + 1} of {steps:,} (pass {epoch + 1}) "
                    f"of the recipe {recipe.name}: lower the rate ({recipe.rate:g}), lengthen the "
                    "warm-up, or clip the gradient (clip = 1); the last checkpoint is kept"
                )
            state.add(loss, right, len(labels))
            watch(Progress(state.step, steps, epoch + 1, loss, rate))
            if time.monotonic() - saved > 60 * minutes and state.step % per_pass:
                state.save(output, accelerator, network, optimiser)
                saved = time.monotonic()
        scored = None if tested is None else _accuracy(network, tested, accelerator.device)
        state.end_of_pass(epoch + 1, rate, scored, time.monotonic() - begun, accelerator)
        state.save(output, accelerator, network, optimiser)
        saved = time.monotonic()
    bare = accelerator.unwrap_model(network).network
    return write_card(card, output, bare, state.history, accelerator.is_main_process)


def _accelerator(recipe: Recipe, device: str) -> Any:
    try:
        from accelerate import Accelerator
        from accelerate.utils import DataLoaderConfiguration
    except ImportError:
        raise MissingExtraError("training", "train") from None
    try:
        return Accelerator(
            mixed_precision=recipe.precision,
            cpu=device == "cpu",
            dataloader_config=DataLoaderConfiguration(split_batches=True),
        )
    except (ValueError, RuntimeError) as problem:
        said = str(problem).strip().splitlines()[0]
        raise InputError(
            f"precision {recipe.precision} cannot be had on this machine's {device} ({said})"
        ) from None


def _shown(images: ImageSet, recipe: Recipe) -> Shown:
    return shown(
        images,
        recipe,
        [made_of(step, recipe.seed) for step in recipe.preprocess],
        [(made_of(step, recipe.seed), share_of(step)) for step in recipe.augment],
        views=VIEWS.get(recipe.loss, 1),
    )


def _check_takes(network: nn.Module, pictures: Shown, recipe: Recipe) -> None:
    """Show the network one batch before any work is done."""
    side, channels = pictures.side, pictures.channels
    network.eval()
    try:
        with torch.no_grad():
            answer = network(torch.zeros(2, channels, side, side))
    except RuntimeError as problem:
        said = str(problem).strip().splitlines()[0]
        raise InputError(
            f"{recipe.architecture} cannot be shown pictures of {channels} channels and {side} px "
            f"({said}); choose another architecture, size or channels"
        ) from None
    if answer.shape != (2, len(pictures.images.classes)):
        raise InputError(
            f"{recipe.architecture} answers two pictures with shape {tuple(answer.shape)}; "
            f"expected (2, {len(pictures.images.classes)})"
        )


def _optimiser(recipe: Recipe, network: nn.Module) -> torch.optim.Optimizer:
    if recipe.optimiser == "adamw":
        return torch.optim.AdamW(
            network.parameters(),
            lr=recipe.rate,
            betas=(recipe.momentum, 0.999),
            weight_decay=recipe.weight_decay,
        )
    return torch.optim.SGD(
        network.parameters(),
        lr=recipe.rate,
        momentum=recipe.momentum,
        weight_decay=recipe.weight_decay,
        nesterov=recipe.momentum > 0,
    )


def _rate(recipe: Recipe, step: int, per_pass: int) -> float:
    """Return the learning rate of a step.

    >>> recipe = Recipe("mine", epochs=10, rate=1.0, warmup=2)
    >>> [round(_rate(recipe, step, 1), 2) for step in range(10)]
    [0.5, 1.0, 1.0, 0.96, 0.85, 0.69, 0.5, 0.31, 0.15, 0.04]
    """
    warm = recipe.warmup * per_pass
    if step < warm:
        return recipe.rate * min(1.0, (step + 1) / warm)
    if recipe.schedule == "cosine":
        part = (step - warm) / max(1.0, recipe.epochs * per_pass - warm)
        return recipe.rate * (1 + math.cos(math.pi * part)) / 2
    if recipe.schedule == "step":
        passed = sum(step >= stone * per_pass for stone in recipe.milestones)
        return recipe.rate * recipe.factor**passed
    return recipe.rate


def _seed(seed: int, step: int, process: int) -> None:
    """Let all that torch draws in a step belong to it."""
    torch.manual_seed(int(digest([str(seed), str(step), str(process)])[:15], 16))


def _step(
    recipe: Recipe,
    network: nn.Module,
    optimiser: Any,
    accelerator: Any,
    views: torch.Tensor,
    labels: torch.Tensor,
) -> tuple[float, int]:
    """Make one step; return the loss, and how many pictures the network was right about."""
    pixels = views.to(torch.float32).div(255)
    with accelerator.autocast():
        loss, logits = LOSSES[recipe.loss](network, pixels, labels, recipe)
    optimiser.zero_grad()
    accelerator.backward(loss)
    if recipe.clip is not None:
        accelerator.clip_grad_norm_(network.parameters(), recipe.clip)
    found = float(loss.detach())
    if math.isfinite(found):
        optimiser.step()
    return found, int((logits.argmax(1) == labels).sum())


def _accuracy(network: nn.Module, pictures: Shown, device: torch.device) -> float:
    right = 0
    network.eval()
    with torch.inference_mode():
        for start in range(0, len(pictures), _EVALUATED_AT_ONCE):
            places = range(start, min(start + _EVALUATED_AT_ONCE, len(pictures)))
            seen = np.stack([pictures.plain(place) for place in places]).transpose(0, 3, 1, 2)
            answers = network(torch.from_numpy(seen).to(device).to(torch.float32).div(255))
            right += int((answers.argmax(1).cpu().numpy() == pictures.labels[places]).sum())
    return right / len(pictures)


def _as_it_is(batch: Any) -> Any:
    return batch


class _State:
    """What a checkpoint holds beside the weights: where the training is, and what it said."""

    def __init__(self, identity: str) -> None:
        self.identity = identity
        self.step = 0
        self.history: list[dict[str, float | int | None]] = []
        self.sums = {"loss": 0.0, "right": 0.0, "pictures": 0.0, "steps": 0.0, "seconds": 0.0}

    def add(self, loss: float, right: int, pictures: int) -> None:
        self.step += 1
        for key, value in (("loss", loss), ("right", right), ("pictures", pictures), ("steps", 1)):
            self.sums[key] += value

    def end_of_pass(
        self, epoch: int, rate: float, scored: float | None, seconds: float, accelerator: Any
    ) -> None:
        told = torch.tensor(
            [self.sums[key] for key in ("loss", "right", "pictures", "steps")],
            dtype=torch.float64,
        )
        loss, right, pictures, steps = accelerator.reduce(told.to(accelerator.device)).tolist()
        self.history.append(
            {
                "epoch": epoch,
                "rate": rate,
                "loss": loss / steps,
                "accuracy": right / pictures,
                "test_accuracy": scored,
                "seconds": round(seconds, 1),
            }
        )
        self.sums = dict.fromkeys(self.sums, 0.0)

    def save(self, output: Path, accelerator: Any, network: Any, optimiser: Any) -> None:
        if not accelerator.is_main_process:
            return
        scaler = accelerator.scaler
        content = {
            "identity": self.identity,
            "step": self.step,
            "history": self.history,
            "sums": self.sums,
            "network": accelerator.unwrap_model(network).state_dict(),
            "optimiser": optimiser.state_dict(),
            "scaler": None if scaler is None else scaler.state_dict(),
        }
        write_atomically(output, output / _CHECKPOINT, lambda path: torch.save(content, path))

    def load(self, output: Path, accelerator: Any, network: Any, optimiser: Any) -> None:
        """Go on from a checkpoint, if there is one."""
        path = output / _CHECKPOINT
        if not path.exists():
            return
        try:
            content = torch.load(path, map_location="cpu", weights_only=True)
            identity = content["identity"]
        except Exception as problem:  # torch raises whatever its unpickler does
            said = str(problem).strip().splitlines()[0]
            raise InputError(
                f"the checkpoint {path} cannot be read ({said}); delete it to begin anew"
            ) from None
        if identity != self.identity:
            raise InputError(
                f"{output} holds a training of another recipe, seed, set of pictures or batch; "
                "choose another directory, or delete it"
            )
        accelerator.unwrap_model(network).load_state_dict(content["network"])
        optimiser.load_state_dict(content["optimiser"])
        if accelerator.scaler is not None and content["scaler"] is not None:
            accelerator.scaler.load_state_dict(content["scaler"])
        self.step, self.history, self.sums = content["step"], content["history"], content["sums"]
