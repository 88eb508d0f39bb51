"""Lists in cells, as users write them: ``['CER', 'WER']``, ``[CER, WER]`` or ``CER, WER``. Parsed, never evaluated."""

from __future__ import annotations

import re
from collections.abc import Sequence

_ITEM = re.compile(
    r"""\s*
    (?: '(?P<single>(?:[^'\\]|\\.)*)'
      | "(?P<double>(?:[^"\\]|\\.)*)"
      | (?P<bare>(?:[^\s\[\]'",;][^\[\],;]*)?)
    )\s*""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_WRITTEN = {"\\": "\\\\", "'": "\\'", **{char: f"\\{name}" for name, char in _ESCAPED.items()}}


def parse_list(text: str) -> tuple[str, ...]:
    """The items of a list cell; an empty cell is an empty list.

    Inside quotes ``\\n``, ``\\t`` and ``\\r`` mean what they mean in Python and JSON, and a backslash before any other
    character is that character.

    Raises:
        ValueError: the list is not closed, or something stands between two items; the message holds the cell.
    """
    text = text.strip()
    inner = text
    if text.startswith("[") or text.endswith("]"):
        if not text.startswith("["):
            raise ValueError(f"the list {text!r} has no opening bracket")
        if not text.endswith("]"):
            raise ValueError(f"the list is not closed: {text}")
        inner = text[1:-1]
    if not inner.strip():
        return ()
    return tuple(_items(inner, text))


def _items(inner: str, whole: str) -> list[str]:
    items: list[str] = []
    at = 0
    while at <= len(inner):
        match = _ITEM.match(inner, at)
        assert match is not None  # every part of the pattern may be empty
        at = match.end()
        if at < len(inner) and inner[at] not in ",;":
            raise ValueError(f"the list {whole!r} cannot be read at {inner[at:]!r}")
        quoted = match["single"] if match["single"] is not None else match["double"]
        bare = (match["bare"] or "").strip()
        if quoted is not None:
            items.append(_ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), quoted))
        elif bare:
            items.append(bare)
        elif at < len(inner):
            raise ValueError(f"the list {whole!r} has an empty item")
        at += 1
    return items


def write_list(texts: Sequence[str]) -> str:
    """A list cell that :func:`parse_list` reads back; empty for no items."""
    return f"[{', '.join(map(_quoted, texts))}]" if texts else ""


def _quoted(text: str) -> str:
    return "'" + "".join(_WRITTEN.get(char, char) for char in text) + "'"
