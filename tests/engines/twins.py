"""Tiny random models of families, as ``vlmhb doctor --probe`` makes them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
from vlmhb import ModelSpec, Twin
from vlmhb.doctor.families import Row, rows, write_config

ROWS: dict[str, Row] = {}
"""The rows of the matrix by name, and by model type, where the first of a type has it."""
for _row in rows():
    ROWS[_row.name] = _row
    ROWS.setdefault(_row.config["model_type"], _row)


def make(family: str, folder: Path) -> Path:
    """Write a family's twin.

    Args:
        family: a row's name, or a model type.
        folder: made if it is not there.
    """
    return Path(twin_of(ROWS[family], folder).path)


def twin_of(row: Row, folder: Path) -> Twin:
    """Write the twin of a row."""
    from vlmhb_hf.twins.build import make_twin

    source = write_config(row, folder.parent / f"{folder.name}-config")
    return make_twin(ModelSpec(model_path=str(source), trust_remote_code=row.trust_remote_code), folder)


def twin_apart(row: Row, folder: Path) -> Twin:
    """The same, made by a process of its own.

    A vLLM that has loaded a model by transformers' code has changed the classes of transformers in its process, and no
    model can be made from them there any more.
    """
    said = folder.parent / f"{folder.name}.json"
    subprocess.run([sys.executable, __file__, row.name, str(folder), str(said)], check=True, capture_output=True)
    return msgspec.json.decode(said.read_bytes(), type=Twin)


def _main(name: str, folder: str, said: str) -> None:
    (row,) = [row for row in rows() if row.name == name]
    Path(said).write_bytes(msgspec.json.encode(twin_of(row, Path(folder))))


if __name__ == "__main__":
    _main(*sys.argv[1:])
