"""From a record with named values (a JSON object, a row of a table of typed columns) to a sample."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vlmhb.contract.dataset import Sample
from vlmhb.data.embedded import from_base64, is_data_address, keep_image
from vlmhb.data.schemas import schema_of
from vlmhb.errors import RequestError

NAMES: dict[str, tuple[str, ...]] = {
    "data_index": ("data_index", "id", "index", "question_id"),
    "images": ("images", "image", "image_path", "file_name"),
    "question": ("question", "prompt", "query"),
    "answer": ("answer", "answers", "reference"),
    "doc_class": ("doc_class",),
    "question_type": ("question_type", "category"),
    "split": ("split",),
    "answer_bbox": ("answer_bbox", "bbox"),
    "choices": ("choices", "options"),
    "json_schema": ("json_schema",),
}
"""The names that each value may have in a record; the first one that is there counts."""

NO_ANSWER = "the record has no answer (answer, or a list in answers)"

COLUMN_OPTIONS = {name: f"the column that holds the {name}" for name in NAMES if name != "split"}
"""Options of formats whose columns people name freely."""


def columns_of(options: Mapping[str, str]) -> dict[str, str]:
    """Those of a dataset's options that name columns."""
    return {name: value for name, value in options.items() if name in COLUMN_OPTIONS}


class Number(str):
    """A number of a JSON file as it is written there: alone it is asked and compared as that text, 1.50 not as 1.5."""


class RecordReader:
    """Makes samples of records.

    Args:
        root: the folder that image paths are relative to.
        columns: for values of :data:`NAMES` the name that they have here.
    """

    def __init__(self, root: Path, columns: Mapping[str, str] | None = None) -> None:
        self._root = root
        self._names = NAMES | {name: (column,) for name, column in (columns or {}).items()}
        self._taken = frozenset(name for names in self._names.values() for name in names) | {*NAMES["answer"]}

    def sample(self, row: int, record: Mapping[str, Any], **defaults: Any) -> Sample:
        """The sample of a record; what is wrong with it is the sample's ``problem``.

        Args:
            row: its number.
            record: the values: texts, numbers, lists; for images paths, bytes or ``{"bytes", "path"}``.
            defaults: fields of the sample for which the record has no value.
        """
        fields: dict[str, Any] = {"data_index": str(row), "question": "", "images": (), **defaults}
        problems = [fields["problem"]] if fields.get("problem") else []
        for name, names in self._names.items():
            value = next((record[key] for key in names if key in record), None)
            if value is None:
                continue
            try:
                fields[name] = self._field(name, value)
            except RequestError as error:
                problems.append(str(error))
        accepted = fields.pop("answer", ())
        if accepted:
            fields["reference"], fields["other_references"] = accepted[0], accepted[1:]
        elif "reference" not in fields:
            fields["reference"] = ""
            problems += [] if fields.get("problem") else [NO_ANSWER]
        further = {
            name.casefold(): as_text(value)
            for name, value in record.items()
            if name not in self._taken and not isinstance(value, bytes | dict | list)
        }
        return Sample(**{**fields, "row": row, "fields": further, "problem": "; ".join(problems) or None})

    def _field(self, name: str, value: Any) -> Any:
        if name == "images":
            return tuple(_image(item) for item in (value if isinstance(value, list) else [value]) if item is not None)
        if name in ("answer", "choices"):
            return _texts(value)
        return schema_of(self._root, as_text(value)) if name == "json_schema" else as_text(value)


def as_text(value: Any) -> str:
    """A value as the text that is asked or compared: texts as they are, other values as JSON has them.

    Raises:
        RequestError: it is nested too deeply.
    """
    if value is None:
        return ""
    return _json(value) if isinstance(value, bool | dict | list) else str(value)


def _json(value: Any) -> str:
    """The value as JSON, numbers as they were written.

    Raises:
        RequestError: it is nested too deeply.
    """
    try:
        if isinstance(value, dict):
            parts = [f"{json.dumps(str(name), ensure_ascii=False)}: {_json(item)}" for name, item in value.items()]
            return "{" + ", ".join(parts) + "}"
        if isinstance(value, list):
            return "[" + ", ".join([_json(item) for item in value]) + "]"
        return str(value) if isinstance(value, Number) else json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        raise RequestError("a value is nested too deeply") from None


def _texts(value: Any) -> tuple[str, ...]:
    """A list of single values as its texts; any other value as one text."""
    if isinstance(value, list) and not any(isinstance(item, dict | list) for item in value):
        return tuple(as_text(item) for item in value if item is not None)
    return (as_text(value),)


def _image(value: Any) -> str:
    """One image as it stands in ``Sample.images``; bytes go into the cache.

    Raises:
        RequestError: the value is no image.
    """
    if isinstance(value, Mapping):
        value = value.get("path") if value.get("bytes") is None else value["bytes"]
    if isinstance(value, bytes):
        return keep_image(value)
    if not isinstance(value, str):
        raise RequestError(f"an image must be a path or an image file's bytes, not {type(value).__name__}")
    return keep_image(from_base64(value)) if is_data_address(value) else value
