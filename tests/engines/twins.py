"""Tiny random models of families, as ``vlmhb doctor --probe`` makes them."""

from __future__ import annotations

from pathlib import Path

from vlmhb import ModelSpec, Twin
from vlmhb.doctor.families import Row, rows, write_config

ROWS: dict[str, Row] = {}
"""The rows of the matrix by model type; that of Pixtral, which has LLaVA's, is not among them."""
for _row in rows():
    ROWS.setdefault(_row.config["model_type"], _row)


def make(family: str, folder: Path) -> Path:
    """Write a family's twin.

    Args:
        family: a model type.
        folder: made if it is not there.
    """
    return Path(twin_of(ROWS[family], folder).path)


def twin_of(row: Row, folder: Path) -> Twin:
    """Write the twin of a row."""
    from vlmhb_hf.twins.build import make_twin

    return make_twin(ModelSpec(model_path=str(write_config(row, folder.parent / f"{folder.name}-config"))), folder)
