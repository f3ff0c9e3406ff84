"""The run card: what was trained, on what, with which versions, and how it went."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiftbed.assets import sha256_of
from shiftbed.data import ImageSet, digest
from shiftbed.errors import InputError
from shiftbed.results._files import write_atomically
from shiftbed.run.versions import versions
from shiftbed.train.recipe import Recipe
from shiftbed.train.source import CARD, WEIGHTS, read_trained

if TYPE_CHECKING:
    from torch import nn

    from shiftbed.train.pictures import Shown

__all__ = ["Card", "write_card"]


@dataclass(frozen=True)
class Card:
    """What is recorded of a training."""

    identity: str
    recipe: Mapping[str, Any]
    #: What evaluation needs to know beside the weights.
    model: Mapping[str, Any]
    data: Mapping[str, Any]
    versions: Mapping[str, str]
    history: Sequence[Mapping[str, Any]] = ()
    weights: str | None = None

    @classmethod
    def of(
        cls,
        recipe: Recipe,
        pictures: Shown,
        test: ImageSet | None,
        mean: Sequence[float],
        std: Sequence[float],
        network: nn.Module,
        batch: int,
    ) -> Card:
        """Return the card of a training that is yet to be done."""
        images = pictures.images
        told = {key: value for key, value in asdict(recipe).items() if value is not None}
        model = {
            "architecture": recipe.network,
            "parameters": sum(one.numel() for one in network.parameters()),
            "outputs": len(images.classes),
            "channels": pictures.channels,
            "size": pictures.side,
            "mean": list(mean),
            "std": list(std),
            "classes": list(images.classes),
        }
        data = {
            "train": images.name,
            "pictures": len(images),
            "fingerprint": images.fingerprint(),
            "test": None if test is None else test.name,
            "batch": batch,
        }
        start = "" if recipe.start is None else _content_of(recipe.start)
        identity = digest([recipe.digest, images.fingerprint(), str(batch), start])
        return cls(identity, told, model, data, versions())

    @staticmethod
    def finished(output: Path, identity: str) -> Card | None:
        """Return the card of the same training, if it is in the directory and done."""
        if not (output / CARD).exists():
            return None
        told = read_trained(output)
        if told.get("identity") != identity:
            raise InputError(
                f"{output} holds a training of another recipe, seed, set of pictures or batch; "
                "choose another directory, or delete it"
            )
        return Card(**told)

    @property
    def accuracy(self) -> float | None:
        """The accuracy after the last pass on the test set, if there was one."""
        if not self.history:
            return None
        found: float | None = self.history[-1].get("test_accuracy")
        return found

    def __str__(self) -> str:
        """The card for people, in Markdown."""
        told = self.recipe
        lines = [
            f"# {told['name']} on {self.data['train']}",
            "",
            f"{told.get('about') or 'A training'}.".capitalize(),
            "",
            f"- architecture: {self.model['architecture']}, "
            f"{self.model['parameters']:,} parameters",
            f"- pictures: {self.data['pictures']:,} of {len(self.model['classes'])} classes, "
            f"{self.model['size']} px, {self.model['channels']} channels",
            f"- seed {told['seed']}, {told['epochs']} passes, batches of {self.data['batch']}",
            f"- fingerprint of the pictures: `{self.data['fingerprint']}`",
            f"- SHA-256 of the weights: `{self.weights}`",
            "",
            "| pass | rate | loss | accuracy in training | accuracy on the test set | seconds |",
            "|---:|---:|---:|---:|---:|---:|",
        ]
        for one in self.history:
            tested = one["test_accuracy"]
            lines.append(
                f"| {one['epoch']} | {one['rate']:.4g} | {one['loss']:.4f} "
                f"| {one['accuracy']:.2%} | {'' if tested is None else f'{tested:.2%}'} "
                f"| {one['seconds']} |"
            )
        lines += ["", "Recipe:", "", "```json", json.dumps(told, indent=1, default=list), "```", ""]
        lines += ["Versions: " + ", ".join(f"{k} {v}" for k, v in self.versions.items()) + ".", ""]
        return "\n".join(lines)


def _content_of(start: str) -> str:
    path = Path(start)
    path = path / WEIGHTS if path.is_dir() else path
    if not path.is_file():
        raise InputError(f"there is no checkpoint {start}")
    return sha256_of(path)


def write_card(
    card: Card, output: Path, network: nn.Module, history: Sequence[Mapping[str, Any]], mine: bool
) -> Card:
    """Write the weights and the card; in a training of several processes, one of them does."""
    from safetensors.torch import save

    card = replace(card, history=tuple(history))
    state = {key: value.detach().cpu().contiguous() for key, value in network.state_dict().items()}
    if mine:
        write_atomically(output, output / WEIGHTS, lambda path: path.write_bytes(save(state)))
        card = replace(card, weights=sha256_of(output / WEIGHTS))
        write_atomically(
            output, output / "README.md", lambda path: path.write_text(str(card), "utf-8")
        )
        told = json.dumps(asdict(card), indent=1, default=list)
        # Last, for it says that the training is done.
        write_atomically(output, output / CARD, lambda path: path.write_text(told, "utf-8"))
    return card
