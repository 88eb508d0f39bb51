"""JSON Schemas that rows name: written out in the cell, or a file inside the dataset's folder."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from vlmhb.data.images import resolve_image
from vlmhb.errors import ImageError, RequestError


def schema_of(root: Path, written: str) -> str:
    """The JSON Schema that a cell means, as text; empty for an empty cell.

    Args:
        root: the dataset's folder; a file may not lie outside it.
        written: the schema itself, beginning with ``{``, or the path of a file that holds it.

    Raises:
        RequestError: there is no such file, or what stands there is no JSON object.
    """
    text = written.strip()
    if not text:
        return ""
    if text.startswith("{"):
        return _checked(text, "json_schema")
    try:
        path = resolve_image(root, text)
        return _file(path, path.stat().st_mtime_ns)
    except ImageError as error:
        raise RequestError(str(error).replace("image ", "json_schema ", 1)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"json_schema {text} cannot be read: {error}") from error


@lru_cache(maxsize=64)
def _file(path: Path, _changed: int) -> str:
    return _checked(path.read_text(encoding="utf-8-sig"), f"json_schema {path.name}")


def read_schema(text: str, name: str = "json_schema") -> dict[str, Any]:
    """The JSON Schema that stands in a text.

    Args:
        text: the schema.
        name: what the error message calls it.

    Raises:
        RequestError: the text is no JSON object.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"{name} is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise RequestError(f"{name} is no JSON Schema: it must be a JSON object")
    return value


def _checked(text: str, name: str) -> str:
    return json.dumps(read_schema(text, name), ensure_ascii=False)
