"""What is said about models: category, architecture, parents, ..."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from shiftbed.data import found_path, parsed_csv, parsed_json, read_text
from shiftbed.errors import InputError

__all__ = ["read_tags", "tags_of"]

_FORMS = (
    "expected a CSV file with the column name and others such as category, architecture and "
    "parents (several with ; between), or a JSON object from names to such objects"
)


def tags_of(name: str, given: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a model's tags, from a file that says them for many models or from its own.

    >>> tags_of("mine", {"category": "robust"})
    {'category': 'robust'}
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return dict(given)
    found: dict[str, Any] = {}
    for pattern, tags in read_tags(given).items():
        if fnmatchcase(name, pattern):
            found.update(tags)
    return found


def read_tags(path: str | Path) -> dict[str, dict[str, Any]]:
    """Read a file of tags by model name; a name may be a wildcard, and later ones win."""
    path = found_path(path) or Path(path)
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"cannot read the models' tags {path} ({problem}); {_FORMS}") from None
    if path.suffix.lower() == ".json":
        content = parsed_json(text, path, _FORMS)
        if not isinstance(content, dict) or not all(
            isinstance(tags, dict) for tags in content.values()
        ):
            raise InputError(f"{path} holds no object of objects; {_FORMS}")
        return content
    found: dict[str, dict[str, Any]] = {}
    for row in parsed_csv(text, path, ["name"], _FORMS):
        tags: dict[str, Any] = {key: value for key, value in row.items() if key and value}
        name = tags.pop("name", None)
        if name is None:
            continue
        if "parents" in tags:
            tags["parents"] = [parent.strip() for parent in str(tags["parents"]).split(";")]
        found[name] = tags
    return found
