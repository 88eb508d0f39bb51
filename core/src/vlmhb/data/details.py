"""What a row has beyond its question and reference, as the run keeps it: one small JSON text, empty for most rows."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from vlmhb.contract.dataset import Sample


class Details(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The fields of :class:`vlmhb.contract.dataset.Sample` of the same names."""

    other_references: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    json_schema: str = ""
    fields: Mapping[str, str] = {}


_DECODER = msgspec.json.Decoder(Details)
_NONE = Details()


def details_of(sample: Sample) -> str:
    """A row's details as text; empty when it has none."""
    if not (sample.other_references or sample.choices or sample.json_schema or sample.fields):
        return ""
    details = Details(
        other_references=sample.other_references,
        choices=sample.choices,
        json_schema=sample.json_schema,
        fields=sample.fields,
    )
    return msgspec.json.encode(details).decode()


def read_details(text: str | None) -> Details:
    """The details that :func:`details_of` wrote."""
    return _DECODER.decode(text) if text else _NONE
