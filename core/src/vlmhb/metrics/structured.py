"""JSON in answers: finding it, reading it, and the fields it has."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

_FENCE = re.compile(r"```(?:json)?\s*\n?(.*?)\s*```", re.DOTALL | re.IGNORECASE)
_DEEPEST = 100
NOTHING = object()
"""What :func:`read_json` returns for a text that is no JSON; ``null`` is JSON."""


def read_json(text: str) -> Any:
    """The value of a JSON text (RFC 8259), or :data:`NOTHING`.

    A single Markdown code fence around it does not count. Text beside it does, since a program could not read that.
    Values nested deeper than 100 levels are refused.
    """
    text = text.strip()
    if match := _FENCE.fullmatch(text):
        text = match[1]
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return NOTHING
    return value if _depth_is_fine(value) else NOTHING


def is_structure(value: Any) -> bool:
    """Whether a value is an object or a list, and not a single text or number."""
    return isinstance(value, dict | list)


def fields(value: Any, normalise: Callable[[str], str]) -> dict[str, str]:
    """The single values of a structure by their place (``seller.name``, ``items[0].price``), as normalised texts.

    Numbers, true and false are written as JSON has them. ``null``, empty texts and empty structures are no fields: a
    key that is null and a key that is not there say the same.
    """
    found = {}
    for place, leaf in _leaves(value, ""):
        text = normalise(leaf if isinstance(leaf, str) else json.dumps(leaf))
        if text:
            found[place] = text
    return found


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{place}.{key}" if place else key)
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _leaves(inner, f"{place}[{at}]")
    elif value is not None:
        yield place, value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _depth_is_fine(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        level = [inner for outer in level if is_structure(outer) for inner in _inside(outer)]
        if not level:
            return True
    return False


def _inside(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else list(value)
