"""Whether an answer is JSON at all, and JSON as its schema wants it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from vlmhb.contract.metric import Metric, Pairs
from vlmhb.errors import MissingPackageError
from vlmhb.metrics.structured import NOTHING, read_json

if TYPE_CHECKING:
    from vlmhb.contract.metric import Column


class JsonParses(Metric):
    """1 if the answer is JSON (RFC 8259), in a Markdown code fence or bare, else 0; the reference does not count."""

    name = "json_parses"
    title = "JSON parses"
    higher_is_better = True
    bounds = (0.0, 1.0)
    source = "RFC 8259"
    raw = True

    def score(self, pairs: Pairs) -> Mapping[str, Column]:
        """``value`` only: the mean is the share of answers that a program can read."""
        import numpy as np

        return {"value": np.array([read_json(answer) is not NOTHING for answer in pairs.answers], dtype=np.float64)}


class JsonValid(Metric):
    """1 if the answer is JSON that keeps to the row's JSON Schema, else 0; any JSON where the row has no schema."""

    name = "json_valid"
    title = "JSON valid"
    higher_is_better = True
    bounds = (0.0, 1.0)
    source = "JSON Schema 2020-12, or the draft that the schema names"
    raw = True
    packages = ("jsonschema-rs",)
    install = "vlmhb[structured]"

    def score(self, pairs: Pairs) -> Mapping[str, Column]:
        """``value`` only: the mean is the share of answers that keep to their schema.

        Raises:
            MissingPackageError: ``jsonschema-rs`` is not installed.
        """
        import numpy as np

        rows = zip(pairs.answers, pairs.json_schemas, strict=True)
        return {"value": np.array([_keeps(*row) for row in rows], dtype=np.float64)}


def _keeps(answer: str, schema: str) -> bool:
    value = read_json(answer)
    return value is not NOTHING and (not schema or validator(schema)(value))


@lru_cache(maxsize=256)
def validator(schema: str) -> Callable[[Any], bool]:
    """What tells whether a value keeps to a JSON Schema, given as text.

    Raises:
        MissingPackageError: ``jsonschema-rs`` is not installed.
        ValueError: the text is no JSON Schema.
    """
    try:
        import jsonschema_rs
    except ImportError as error:
        message = "JSON Schema needs the package jsonschema-rs: pip install 'vlmhb[structured]'"
        raise MissingPackageError(message) from error
    check: Callable[[Any], bool] = jsonschema_rs.validator_for(json.loads(schema)).is_valid
    return check
