"""A config file as rows of named cells, with the place of everything, so that each fault can say where it is.

Config files are tables as :mod:`vlmhb.data.tables` reads them. Lines that begin with ``#`` are comments, and records
whose cells are all empty are left out; both still count as lines and records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from vlmhb.config.cells import CellError
from vlmhb.config.names import nearest
from vlmhb.data.tables import Table, TableError
from vlmhb.errors import Fault

T = TypeVar("T")
_MISSPELT = 0.75
"""Likeness (difflib's ratio) from which an unknown column is taken for a misspelt one."""


class Columns(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of one kind of config file.

    Attributes:
        known: columns that mean something.
        needed: those that must be there.
        ignored: columns of the older project that mean nothing here.
        elsewhere: columns that belong to another file, with that file's name.
    """

    known: tuple[str, ...]
    needed: tuple[str, ...]
    ignored: tuple[str, ...] = ()
    elsewhere: Mapping[str, str] = {}


class Row(msgspec.Struct, frozen=True):
    """One record: where it stands, and its cells by lower-case column name, without spaces around them."""

    file: str
    number: int
    line: int
    cells: Mapping[str, str]

    def text(self, column: str) -> str:
        """A cell's text; empty when the cell is, or when there is no such column."""
        return self.cells.get(column, "")

    def fault(self, column: str, message: str, hint: str | None = None) -> Fault:
        """A fault of a cell."""
        return Fault(
            message=message,
            file=self.file,
            row=self.number,
            line=self.line,
            column=column,
            value=self.text(column),
            hint=hint,
        )

    def parse(self, column: str, parser: Callable[[str], T], faults: list[Fault]) -> T | None:
        """A cell's value; None when the cell is empty, or wrong, which is added to the faults."""
        text = self.text(column)
        if not text:
            return None
        try:
            return parser(text)
        except CellError as error:
            faults.append(self.fault(column, str(error), error.hint))
            return None


class Setting(NamedTuple):
    """A value and the cell it comes from; ``row`` is None when it was given on the command line."""

    value: Any
    row: Row | None
    column: str

    def fault(self, message: str, hint: str | None = None) -> Fault:
        """A fault of the value, at the place where it was written."""
        if self.row is None:
            return Fault(message=message, file="command line", column=None, value=str(self.value), hint=hint)
        return self.row.fault(self.column, message, hint)


def read_sheet(path: Path, columns: Columns, faults: list[Fault], notes: list[str]) -> list[Row]:
    """Read a config file; its faults and notes are added to the lists."""
    rows: list[Row] = []
    before = len(faults)
    try:
        table = Table(path, comments=True)
        if fault := table.one_cell(columns.needed):
            faults.append(fault)
            return rows
        _check_header(table, columns, faults, notes)
        names = {name: at for name, at in table.columns.items() if name in columns.known}
        for record in table.records(faults):
            if any(cell.strip() for cell in record.cells):
                cells = {name: record.cells[at].strip() for name, at in names.items()}
                rows.append(Row(str(path), record.row, record.line, cells))
    except TableError as error:
        faults.append(error.fault)
        return rows
    if not rows and len(faults) == before:
        faults.append(table.fault("there is no row below the header.", line=table.header_line))
    return rows


def _check_header(table: Table, columns: Columns, faults: list[Fault], notes: list[str]) -> None:
    def fault(column: str, message: str, hint: str | None = None) -> None:
        place = {"file": str(table.path), "line": table.header_line, "column": column}
        faults.append(Fault(message=message, value=column, hint=hint, **place))  # type: ignore[arg-type]

    ignored: list[str] = []
    missing = list(columns.needed)
    for name in table.columns:
        if name in columns.known:
            continue
        if name in columns.ignored:
            ignored.append(name)
            continue
        if name in columns.elsewhere:
            fault(name, f"the column {name} belongs into {columns.elsewhere[name]}.")
            continue
        near = nearest(name, [known for known in columns.known if known not in table.columns], _MISSPELT)
        if near:
            fault(name, f"there is no column {name}.", f"Did you mean {near}?")
            missing = [column for column in missing if column != near]
        else:
            notes.append(f"{table.path}: the column {name} is not known and not used.")
    faults.extend(table.missing(missing, "this column is missing.", _header_hint(table, columns.needed)))
    if ignored:
        notes.append(f"{table.path}: columns of the older project are not used: {', '.join(ignored)}.")


def _header_hint(table: Table, needed: Sequence[str]) -> str:
    header = ", ".join(name for name in table.header if name)
    return f"A config needs {' and '.join(needed)}; the header has {header}."
