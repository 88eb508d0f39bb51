"""Answers that were made elsewhere, to be scored: a table or JSON lines.

A table has ``row`` (from 1, as in the dataset) or the older ``id`` (from 0), and ``answer`` or the older
``model_answer``; JSON lines have the same names as keys. ``status`` other than ``ok``, a text in ``error`` or a JSON
null as the answer mean that the row has no answer. An empty text is an answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from vlmhb.data.tables import Table, TableError
from vlmhb.errors import ConfigError, Fault

_FIRST_NUMBER = {"row": 1, "id": 0}
_ANSWER = ("answer", "model_answer")
_KNOWN = (*_FIRST_NUMBER, *_ANSWER, "status", "error")


class GivenAnswer(NamedTuple):
    """One answer; ``error`` says why there is none."""

    text: str
    error: str | None = None


class GivenAnswers(msgspec.Struct, frozen=True):
    """All answers of a file by the dataset's row number, and what was noticed while reading."""

    by_row: dict[int, GivenAnswer]
    notes: tuple[str, ...] = ()


class _Entry(NamedTuple):
    row: int | None
    line: int
    values: Mapping[str, Any]


def read_answers(path: Path, dataset_rows: int) -> GivenAnswers:
    """Read answers.

    Args:
        path: a delimited table or a file of JSON objects, one a line; told apart by the first character.
        dataset_rows: number of rows of the dataset; answers belong to rows 1 to this.

    Raises:
        ConfigError: every fault: columns that are missing or misspelt, a number that is no row of the dataset or
            comes twice, an answer that is no text.
    """
    faults: list[Fault] = []
    notes: list[str] = []
    is_json = _starts_with_bracket(path)
    entries = _json_lines(path, faults) if is_json else _table(path, faults, notes)
    by_row: dict[int, GivenAnswer] = {}
    lines: dict[int, int] = {}
    for entry in entries:
        read = _read_entry(path, entry, dataset_rows, faults)
        if read is None:
            continue
        number, answer = read
        if number in by_row:
            message = f"row {number} of the dataset has an answer already, on line {lines[number]}."
            faults.append(_fault(path, entry, _number_column(entry.values), message))
            continue
        by_row[number] = answer
        lines[number] = entry.line
    if faults:
        raise ConfigError(faults)
    return GivenAnswers(by_row, tuple(notes))


def _read_entry(path: Path, entry: _Entry, last: int, faults: list[Fault]) -> tuple[int, GivenAnswer] | None:
    values = entry.values
    column = _number_column(values)
    answer_column = next((name for name in _ANSWER if name in values), None)
    if column is None or answer_column is None:
        needed = "row (or id)" if column is None else "answer (or model_answer)"
        faults.append(_fault(path, entry, None, f"there is no {needed}."))
        return None
    number = _whole_number(values[column])
    first = _FIRST_NUMBER[column]
    if number is None:
        faults.append(_fault(path, entry, column, f"{values[column]!r} is not a row number."))
        return None
    if not first <= number < first + last:
        message = f"{number} is no row of the dataset; {column} goes from {first} to {first + last - 1}."
        faults.append(_fault(path, entry, column, message))
        return None
    text = values[answer_column]
    error = _error_of(values, text)
    if error is None and not isinstance(text, str):
        message = f"the answer must be text, not {json.dumps(text, ensure_ascii=False)[:80]}; write it in quotes."
        faults.append(_fault(path, entry, answer_column, message))
        return None
    return number - first + 1, GivenAnswer(text if isinstance(text, str) else "", error)


def _error_of(values: Mapping[str, Any], answer: Any) -> str | None:
    """Why an entry has no answer, or None when it has one."""
    error = str(values.get("error") or "").strip()
    status = str(values.get("status") or "ok").strip()
    if error or status.casefold() != "ok":
        return error or f"its status is {status}"
    return "the answer is null" if answer is None else None


def _number_column(values: Mapping[str, Any]) -> str | None:
    return next((name for name in _FIRST_NUMBER if name in values), None)


def _whole_number(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    text = value.strip() if isinstance(value, str) else ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def _fault(path: Path, entry: _Entry, column: str | None, message: str) -> Fault:
    value = str(entry.values[column]) if column else None
    return Fault(message=message, file=str(path), row=entry.row, line=entry.line, column=column, value=value)


def _table(path: Path, faults: list[Fault], notes: list[str]) -> Iterator[_Entry]:
    try:
        table = Table(path)
    except TableError as error:
        faults.append(error.fault)
        return
    columns = {name: at for name, at in table.columns.items() if name in _KNOWN}
    missing = [group for group in (tuple(_FIRST_NUMBER), _ANSWER) if not any(name in columns for name in group)]
    others = [name for name in table.columns if name not in _KNOWN]
    if missing and (one_cell := table.one_cell(_KNOWN)):
        faults.append(one_cell)
        return
    for group in missing:
        message = f"there is no column {' or '.join(group)}; the header has {', '.join(filter(None, table.header))}."
        faults.append(table.fault(message, line=table.header_line, column=group[0]))
    if missing:
        return
    if others:
        notes.append(f"{path}: columns not used: {', '.join(others)}.")
    try:
        for record in table.records(faults):
            yield _Entry(record.row, record.line, {name: record.cells[at] for name, at in columns.items()})
    except TableError as error:
        faults.append(error.fault)


def _json_lines(path: Path, faults: list[Fault]) -> Iterator[_Entry]:
    row = 0
    with path.open("rb") as stream:
        for line, content in enumerate(stream, start=1):
            content = content.removeprefix(b"\xef\xbb\xbf") if line == 1 else content
            if not content.strip():
                continue
            row += 1
            try:
                values = json.loads(content.decode("utf-8"))
            except UnicodeDecodeError:
                message = "the text is not UTF-8. Save it as UTF-8."
            except (ValueError, RecursionError) as error:
                message = f"this is not a JSON object: {error}. Write one object a line."
            else:
                if isinstance(values, dict):
                    yield _Entry(row, line, values)
                    continue
                message = 'this is not a JSON object. Write one object a line: {"row": 1, "answer": "..."}'
            faults.append(Fault(message=message, file=str(path), row=row, line=line))


def _starts_with_bracket(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            start = stream.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    except OSError as error:
        message = f"the file cannot be read: {error.strerror or error}."
        raise ConfigError([Fault(message=message, file=str(path))]) from error
    return start.startswith((b"{", b"["))
