"""``hf:REPOSITORY``: image classifiers of transformers, and CLIP as a zero-shot classifier."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shiftbed.data import found_path, imagenet_classes, imagenet_names
from shiftbed.errors import InputError, MissingExtraError
from shiftbed.models._torchvision import import_torchvision
from shiftbed.models.geometry import Fit, Geometry, Interpolation
from shiftbed.models.hub import cached_file, reachable
from shiftbed.models.keys import read_classes, text_lines, wordnet_keys
from shiftbed.models.model import Model
from shiftbed.models.options import Options
from shiftbed.models.registry import source

__all__ = ["geometry_of"]

#: By Pillow's number.
_INTERPOLATIONS: dict[int, Interpolation] = {
    0: "nearest",
    1: "lanczos",
    2: "bilinear",
    3: "bicubic",
    4: "box",
    5: "hamming",
}


@source("hf", "hf:google/vit-base-patch16-224")
def _load(repository: str, options: Options) -> Model:
    """Load a classifier, or a model of the CLIP kind with prompts for ``classes``.

    Zero-shot classes are ImageNet's 1,000 unless ``classes`` says otherwise; ``prompts`` is a
    file with one prompt per line, averaged, where ``{}`` stands for the class.
    """
    try:
        import_torchvision()
        import transformers
    except ImportError:
        raise MissingExtraError("hf:", "hf") from None
    from shiftbed.models._torch import Pretrained, torch_model

    folder = found_path(repository)
    name = Path(repository).name
    if folder is not None:
        repository = str(folder)
    local = folder is not None or cached_file(repository, ["config.json"]) is not None
    if not local and not reachable():
        raise InputError(
            f"hf:{repository} is no folder here, is not in the hub's cache, and the hub cannot be "
            "reached; download it where there is a network (`hf download REPOSITORY --local-dir "
            "FOLDER`) and give hf:FOLDER"
        )
    # Code that a repository brings is never run, nor is the user asked to.
    how: Any = {"local_files_only": local, "trust_remote_code": False}
    try:
        config = transformers.AutoConfig.from_pretrained(repository, **how)
        processors: Any = transformers.AutoImageProcessor
        processor = processors.from_pretrained(repository, **how)
        if hasattr(config, "text_config"):
            clip = transformers.AutoModel.from_pretrained(repository, **how)
            tokenizer = transformers.AutoTokenizer.from_pretrained(repository, **how)
            network, keys = _zero_shot(clip, tokenizer, options)
        else:
            network = transformers.AutoModelForImageClassification.from_pretrained(
                repository, **how
            )
            labels = network.config.id2label
            keys = wordnet_keys([str(labels[index]) for index in sorted(labels)])
    except pickle.UnpicklingError:
        raise InputError(
            f"hf:{repository} keeps its weights in a pickle with code in it, which is not opened; "
            "convert it to safetensors where you trust it"
        ) from None
    except (OSError, ValueError, KeyError, ImportError) as problem:
        said = (str(problem).strip() or type(problem).__name__).splitlines()[0]
        raise InputError(f"hf:{repository} cannot be loaded ({said[:240]})") from None
    own = Pretrained(
        network,
        _checked_geometry(processor, repository),
        *_normalisation(processor),
        keys,
        {"architecture": config.model_type},
    )
    return torch_model(name, f"hf:{repository}", own, options)


def geometry_of(processor: Any) -> Geometry:
    """Return the geometry of an image processor of transformers."""
    size = dict(processor.size or {})
    crop = dict(getattr(processor, "crop_size", None) or {})
    part = getattr(processor, "crop_pct", None)
    fit: Fit = "shorter" if "shortest_edge" in size else "squash"
    if fit == "shorter":
        resize = (size["shortest_edge"], size["shortest_edge"])
    else:
        resize = (size["height"], size["width"])
    seen = resize
    if getattr(processor, "do_center_crop", False):
        seen = (crop["height"], crop["width"])
    elif part and resize[0] >= 384:  # ConvNeXt's: large inputs see all of the picture,
        fit = "squash"
    elif part:  # small ones this part of its shorter side
        resize = (int(resize[0] / part), int(resize[0] / part))
    return Geometry(
        seen,
        resize if processor.do_resize else None,
        fit,
        _INTERPOLATIONS[int(processor.resample)],
        channels=3,
        centre="down",
    )


def _normalisation(processor: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    if not processor.do_normalize:
        return (0.0,), (1.0,)
    return tuple(processor.image_mean), tuple(processor.image_std)


def _checked_geometry(processor: Any, repository: str) -> Geometry:
    """Refuse a processor that does something to pictures which a geometry does not say."""
    ramp = np.linspace(0, 255, 301, dtype=np.uint8)
    picture = np.stack([np.tile(level, (403, 1)) for level in (ramp, ramp[::-1], ramp)], -1)
    try:
        geometry = geometry_of(processor)
        mean, std = _normalisation(processor)
        theirs = processor(images=picture, return_tensors="np")["pixel_values"][0]
        ours = geometry.apply(picture).astype(np.float32).transpose(2, 0, 1) / 255
        ours = (ours - np.reshape(mean, (-1, 1, 1))) / np.reshape(std, (-1, 1, 1))
        # Of 255 levels: transformers resizes tensors by default, which may round otherwise.
        equal = theirs.shape == ours.shape and np.abs(theirs - ours).max() < 2.5 / 255 / min(std)
    except (AttributeError, KeyError, TypeError, ValueError):
        equal = False
    if not equal:
        raise InputError(
            f"the image processor of hf:{repository} ({type(processor).__name__}) prepares "
            "pictures in a way that is not known here; write a function that does it and give "
            "python:module:function"
        )
    return geometry


def _zero_shot(clip: Any, tokenizer: Any, options: Options) -> tuple[Any, tuple[str, ...]]:
    """Return CLIP with its text embeddings computed once, and the classes' keys."""
    import torch

    keys, words = _classes(options.classes)
    prompts = _prompts(options.prompts)
    rows = []
    with torch.inference_mode():
        for word in words:
            tokens = tokenizer(
                [prompt.replace("{}", word) for prompt in prompts],
                padding=True,
                truncation=True,
                return_tensors="pt",
            )
            texts = _features(clip.get_text_features(**tokens))
            mean = (texts / texts.norm(dim=-1, keepdim=True)).mean(dim=0)
            rows.append(mean / mean.norm())
    scale = getattr(clip, "logit_scale", None)
    bias = getattr(clip, "logit_bias", None)

    class ZeroShot(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.clip = clip
            self.register_buffer("texts", torch.stack(rows).clone())

        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            pictures = _features(self.clip.get_image_features(pixel_values=pixels))
            pictures = pictures / pictures.norm(dim=-1, keepdim=True)
            logits: torch.Tensor = pictures @ self.texts.T.to(pictures.dtype)
            if scale is not None:
                logits = logits * self.clip.logit_scale.exp()
            if bias is not None:
                logits = logits + self.clip.logit_bias
            return logits

    return ZeroShot(), keys


def _features(answer: Any) -> Any:
    """A tensor of features, as transformers 4 returns it, or inside 5's answer."""
    return getattr(answer, "pooler_output", answer)


def _classes(given: str | tuple[str, ...] | None) -> tuple[tuple[str, ...], Sequence[str]]:
    """Return the keys of zero-shot classes and the words for them in prompts."""
    if given is None or given == "imagenet-1k":
        keys = imagenet_classes()
        return keys, [imagenet_names()[key][0] for key in keys]
    if isinstance(given, str):
        given = read_classes(given)
    names = imagenet_names()
    return given, [names[key][0] if key in names else key.replace("_", " ") for key in given]


def _prompts(path: str | None) -> list[str]:
    if path is None:
        return ["a photo of a {}."]
    prompts = text_lines(path)
    if prompts is None:
        raise InputError(f"cannot read the prompts {path}; expected one per line, with {{}}")
    wrong = [prompt for prompt in prompts if "{}" not in prompt]
    if wrong or not prompts:
        raise InputError(
            f"the prompts {path} hold {wrong[0]!r} without {{}}"
            if wrong
            else f"the prompts {path} hold no prompt"
        )
    return prompts
