"""From specs, wildcards and list files to models."""

from __future__ import annotations

import contextlib
import glob
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from shiftbed.data import found_path
from shiftbed.errors import InputError, MissingExtraError, unknown
from shiftbed.models.keys import class_keys, text_lines
from shiftbed.models.model import Model
from shiftbed.models.options import Options, read_options
from shiftbed.models.registry import sources
from shiftbed.models.tags import tags_of

__all__ = ["ModelLike", "ModelsLike", "expand", "list_models", "listed", "load"]

#: A spec, a model, a torch module, or a function from uint8 (N, H, W, C) to logits.
ModelLike = str | Model | Callable[..., Any]
#: One of them, several, or several by the names they should have.
ModelsLike = ModelLike | Sequence[ModelLike] | Mapping[str, ModelLike]


def load(model: ModelLike, **overrides: Any) -> Model:
    """Return the model that a spec names, or a callable as a model.

    Overrides are those of :class:`Options`; a spec may carry its own, after commas, as in
    ``timm:resnet50.a1_in1k,size=288,name=larger``, and these win.

    >>> import numpy as np
    >>> load(lambda batch: np.zeros((len(batch), 3)), name="undecided").outputs
    3
    """
    return load_any(model, read_options(overrides))


def load_any(model: Any, options: Options, name: str | None = None) -> Model:
    """Return a model for a spec, a callable or a model, with options that are read already."""
    if isinstance(model, str):
        prefix, rest, own = _parsed(model)
        if own:
            chosen = read_options(own)
            options = replace(options, **{key: getattr(chosen, key) for key in own})
        loaded = replace(sources()[prefix].load(rest, options), spec=model)
    elif isinstance(model, Model):
        loaded = _overridden(model, options)
    else:
        from shiftbed.models.sources.callables import wrap

        loaded = wrap(model, options, name)
    name = options.name or loaded.name
    return replace(loaded, name=name, tags={**loaded.tags, **tags_of(name, options.tags)})


def _overridden(model: Model, options: Options) -> Model:
    """Override what can be of a model that is made already."""
    usual = Options()
    for key in ("mean", "std", "arch", "outputs", "prompts", "device", "dtype", "compile"):
        if getattr(options, key) != getattr(usual, key):
            raise InputError(f"model {model.name} is made already; {key} cannot be changed in it")
    keys = class_keys(options.classes, model.class_keys, model.outputs, model.name)
    return replace(model, geometry=options.geometry(model.geometry), class_keys=keys)


def _parsed(spec: str) -> tuple[str, str, dict[str, str]]:
    """Return the prefix, what follows it, and the options at the end."""
    prefix, colon, rest = spec.partition(":")
    known = sources()
    if not colon or prefix not in known:
        if colon and len(prefix) > 1 and prefix.isidentifier():  # one letter is a drive
            raise unknown("source of models", prefix, known)
        if Path(spec).suffix == ".onnx":
            raise InputError(f"{spec} needs its prefix; write onnx:{spec}")
        if Path(spec).suffix in {".pt", ".pth", ".safetensors", ".ckpt"}:
            raise InputError(
                f"{spec} needs its prefix and architecture; write "
                f"torch:{spec},arch=timm:resnet18 (or torchvision:..., python:module:factory)"
            )
        if colon:
            raise unknown("source of models", prefix, known)
        forms = ", ".join(entry.usage for entry in known.values())
        raise InputError(f"{spec!r} is no model spec; write one of {forms}")
    parts = rest.split(",")
    own: dict[str, str] = {}
    while len(parts) > 1 and "=" in parts[-1]:
        key, _, value = parts.pop().partition("=")
        own[key.strip()] = value.strip()
    rest = ",".join(parts)
    if not rest:
        raise InputError(f"{spec!r} names nothing after its prefix; write {known[prefix].usage}")
    return prefix, rest, own


def expand(patterns: str | Iterable[str]) -> list[str]:
    """Return specs for specs, wildcards and list files (``@file``).

    A wildcard is matched with the source's list (``timm:resnet*.a1_in1k``) or, where it has
    none, with files (``onnx:nets/*.onnx``).

    A list file has one spec or wildcard per line; ``#`` begins a comment.
    """
    return _expanded([patterns] if isinstance(patterns, str) else patterns, ())


def _expanded(patterns: Iterable[str], inside: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for pattern in patterns:
        if pattern.startswith("@"):
            if pattern in inside:
                raise InputError(f"the list of models {pattern[1:]} has itself among its lines")
            found.extend(_expanded(_lines_of(pattern[1:]), (*inside, pattern)))
        elif any(char in pattern for char in "*?["):
            found.extend(_wild(pattern))
        else:
            _parsed(pattern)
            found.append(pattern)
    return list(dict.fromkeys(found))


def listed(models: ModelsLike) -> list[tuple[ModelLike, dict[str, str]]]:
    """Return each model that is meant, wildcards and list files expanded, with its name if given.

    >>> listed(["new=onnx:net.onnx", "timm:resnet18.a1_in1k"])
    [('onnx:net.onnx', {'name': 'new'}), ('timm:resnet18.a1_in1k', {})]
    """
    if isinstance(models, Mapping):
        return [(model, {"name": name}) for name, model in models.items()]
    if isinstance(models, (str, Model)) or callable(models):
        models = [models]
    found: list[tuple[ModelLike, dict[str, str]]] = []
    for model in models:
        name, spec = _named(model) if isinstance(model, str) else ("", model)
        specs: Sequence[ModelLike] = expand(spec) if isinstance(spec, str) else [spec]
        if name and len(specs) > 1:
            raise InputError(f"{name} is the name of one model, but {spec} means {len(specs)}")
        found += [(one, {"name": name} if name else {}) for one in specs]
    if not found:
        raise InputError("there are no models; give at least one")
    return found


def _named(model: str) -> tuple[str, str]:
    """Split ``NAME=SPEC``; a spec alone has no name.

    >>> _named("new=onnx:net.onnx"), _named("onnx:a=b.onnx")
    (('new', 'onnx:net.onnx'), ('', 'onnx:a=b.onnx'))
    """
    name, equals, spec = model.partition("=")
    return (name, spec) if equals and name and ":" not in name and ":" in spec else ("", model)


def _lines_of(path: str) -> list[str]:
    lines = text_lines(path)
    if lines is None:
        raise InputError(f"cannot read the list of models {path}; expected a text file")
    specs = [line.partition("#")[0].strip() for line in lines]
    specs = [spec for spec in specs if spec]
    if not specs:
        raise InputError(f"the list of models {path} is empty; expected one spec per line")
    return specs


def _wild(pattern: str) -> list[str]:
    prefix, rest, own = _parsed(pattern)
    options = "".join(f",{key}={value}" for key, value in own.items())
    entry = sources()[prefix]
    if entry.files:
        # Not Path.glob, which takes no absolute pattern.
        found = sorted(glob.glob(rest, recursive=True))  # noqa: PTH207
        if not found and found_path(rest) is not None:
            found = [rest]  # a file whose name has such a character
    elif names := entry.names():
        found = [name for name in names if fnmatchcase(name, rest)]
    else:
        raise InputError(f"{prefix}: has no list of models to match {rest!r} with; name each model")
    if not found:
        hint = "" if entry.files else "; see `shiftbed list models`"
        raise InputError(f"nothing of {prefix}: matches {rest!r}{hint}")
    return [f"{prefix}:{name}{options}" for name in found]


def list_models(pattern: str | None = None) -> list[str]:
    """Return the specs of all models that can be listed, or of those that match a pattern.

    A pattern without a prefix is looked for in every source.
    """
    if pattern is not None and ":" in pattern:
        return expand(pattern)
    wanted = "*" if pattern is None else pattern
    if not any(char in wanted for char in "*?["):
        wanted = f"*{wanted}*"
    found: list[str] = []
    for entry in sources().values():
        # A source whose library is not installed has nothing to list.
        with contextlib.suppress(MissingExtraError):
            names = entry.names()
            found.extend(f"{entry.prefix}:{name}" for name in names if fnmatchcase(name, wanted))
    if not found:
        raise InputError(f"no model that can be listed matches {pattern!r}")
    return found
