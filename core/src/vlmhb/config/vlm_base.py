"""``vlm_base.csv``: which folder a model name means, and how the model is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from vlmhb.config import columns
from vlmhb.config.cells import parse_options
from vlmhb.config.names import canonical_backend
from vlmhb.config.sheet import Row, read_sheet
from vlmhb.errors import Fault


class BaseModel(msgspec.Struct, frozen=True, kw_only=True):
    """One row of ``vlm_base.csv``.

    Attributes:
        row: where it stands.
        name: ``model_name``.
        family: ``model_family``.
        backend: the backend's name, empty for a row that holds for every backend.
        path: ``model_path`` as written.
        model: fields of ``ModelSpec`` that the row fills.
        options: engine options that the row fills.
    """

    row: Row
    name: str
    family: str
    backend: str
    path: str
    model: Mapping[str, Any]
    options: Mapping[str, Any]

    @property
    def loading(self) -> tuple[Any, ...]:
        """Everything of the row that decides what is loaded."""
        return self.path, dict(self.model), dict(self.options)


class VlmBase:
    """All rows of a ``vlm_base.csv``; an empty one where there is no file."""

    def __init__(self, folder: Path, models: Iterable[BaseModel] = ()) -> None:
        self.folder = folder
        self.models = tuple(models)

    def find(self, name: str, backend: str) -> BaseModel | None:
        """The row of this pair, else the row of the model that names no backend."""
        rows = [model for model in self.models if model.name == name]
        return next((m for m in rows if m.backend == backend), next((m for m in rows if not m.backend), None))

    def backends_of(self, name: str) -> list[str]:
        """The backends for which the model has a row; empty when a row holds for every backend."""
        rows = [model for model in self.models if model.name == name]
        return [] if any(not m.backend for m in rows) else list(dict.fromkeys(m.backend for m in rows))

    def of_other_backends(self, name: str) -> BaseModel | None:
        """A row of the model for another backend, when all such rows name the same folder."""
        rows = [model for model in self.models if model.name == name]
        return rows[0] if rows and len({row.path for row in rows}) == 1 else None


def read_vlm_base(path: Path, backends: Iterable[str], faults: list[Fault], notes: list[str]) -> VlmBase:
    """Read a ``vlm_base.csv``; its faults and notes are added to the lists."""
    known = tuple(backends)
    models: dict[tuple[str, str], BaseModel] = {}
    for row in read_sheet(path, columns.VLM_BASE_COLUMNS, faults, notes):
        model = _model(row, known, faults)
        if model is None:
            continue
        earlier = models.setdefault((model.backend, model.name), model)
        if earlier.loading != model.loading:
            message = f"row {earlier.row.number} says something else about {model.name} on the same backend."
            faults.append(row.fault("model_name", message, "Keep one of the two rows."))
    return VlmBase(path.parent, models.values())


def _model(row: Row, known: tuple[str, ...], faults: list[Fault]) -> BaseModel | None:
    name = row.text("model_name")
    if not name:
        faults.append(row.fault("model_name", "the model's name is empty."))
        return None
    fields = {column: row.parse(column, parser, faults) for column, parser in columns.MODEL.items()}
    return BaseModel(
        row=row,
        name=name,
        family=row.text("model_family"),
        backend=written_backend(row, known, faults)[1],
        path=row.text("model_path"),
        model={column: value for column, value in fields.items() if value is not None},
        options=row.parse(columns.OPTIONS, parse_options, faults) or {},
    )


def written_backend(row: Row, known: Iterable[str], faults: list[Fault]) -> tuple[str, str]:
    """The column that names a row's backend, and the backend's name; empty when the row names none.

    A row whose ``backend`` and ``framework`` mean different engines is a fault.
    """
    names = tuple(known)
    found = {column: canonical_backend(row.text(column), names) for column in columns.BACKEND if row.text(column)}
    if len(set(found.values())) > 1:
        message = f"backend is {row.text('backend')!r}, but framework is {row.text('framework')!r}."
        faults.append(row.fault("framework", message, "Keep one of the two columns."))
    column = next(iter(found), columns.BACKEND[0])
    return column, found.get(column, "")
