"""Delimited text, read and written the same way everywhere.

Reading: UTF-8 with or without byte order mark; ``;``, ``,`` or tab, whichever the header uses most, or what a first
line ``sep=;`` says, as spreadsheet programs write it; cells quoted or not; any line ends, also inside quotes. Every
cell stays the text that stands in the file. A record has a number (from 1, below the header) and the physical line on
which it starts (the header's is 1); empty lines are no records.

Writing: UTF-8 with byte order mark, so that spreadsheet programs recognise it, and CRLF between records. What is
written reads back as exactly the same text, except that lone surrogates, which no UTF-8 file can hold, become U+FFFD.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, TextIO

import msgspec

from vlmhb.errors import Fault, RunError, VlmhbError
from vlmhb.whole import written_whole

DELIMITERS = ";,\t"
_LARGEST_CELL = 2**31 - 1
_SURROGATE = re.compile("[\ud800-\udfff]")
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_SEPARATOR = re.compile(r"sep=([^\w\"\r\n])[\r\n]*", re.IGNORECASE)
_NO_TABLES = {
    b"PK\x03\x04": "this is a workbook of a spreadsheet program (or another ZIP file), not CSV.",
    b"\xd0\xcf\x11\xe0": "this is a workbook of an old spreadsheet program, not CSV.",
}
_BYTE_ORDER_MARKS_16 = (b"\xff\xfe", b"\xfe\xff")


class TableError(VlmhbError):
    """A table cannot be read; ``fault`` says where and why. Callers turn it into the error of their own file."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__(str(fault))


class _QuoteError(TableError):
    """The quotes of one record are wrong; the reader does not know where the next record starts."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """One record: its number below the header, the line it starts on, and one text for each header cell."""

    row: int
    line: int
    cells: list[str]


class Table:
    """A table whose header was read; the records are streamed each time they are asked for.

    Attributes:
        path: the file.
        header: the names as written, without spaces around them. Empty names are allowed; their cells mean nothing.
        delimiter: what separates the cells.
        columns: place of each name, lower case.
    """

    def __init__(self, path: Path, *, comments: bool = False) -> None:
        """Open a table and read its header.

        Args:
            path: the file.
            comments: skip lines that begin with ``#`` where a record would begin.

        Raises:
            TableError: no such file, not UTF-8 text, no header, or a name that stands in it twice.
        """
        self.path = path
        self._comments = comments
        self.delimiter = self._find_delimiter()
        self.header: tuple[str, ...] = ()
        self.header_line = 1
        for line, cells in self._parse():
            self.header = tuple(cell.strip() for cell in cells)
            self.header_line = line
            break
        if not any(self.header):
            raise TableError(self.fault("the file is empty; its first line must name the columns."))
        self.columns: dict[str, int] = {}
        for index, name in enumerate(self.header):
            key = name.casefold()
            if key and key in self.columns:
                raise TableError(self.fault(f"two columns are called {name!r}.", line=self.header_line, column=name))
            self.columns[key] = index
        self.columns.pop("", None)

    def one_cell(self, names: Sequence[str]) -> Fault | None:
        """The fault of a header that is a single cell of several words, and none of the names that are needed."""
        words = len(self.header) == 1 and re.search(r"\w\W+\w", self.header[0])
        if not words or any(name in self.columns for name in names):
            return None
        message = f"the header is one cell, {self.header[0]!r}. Cells are separated by ; or , or a tab."
        return self.fault(message, line=self.header_line)

    def missing(self, names: Sequence[str], message: str, hint: str | None = None) -> list[Fault]:
        """A fault for each column that is not there; a single one where the delimiter must be what is wrong."""
        absent = [name for name in names if name not in self.columns]
        if absent and (fault := self.one_cell(names)):
            return [fault]
        place = Fault(message=message, file=str(self.path), line=self.header_line, hint=hint)
        return [msgspec.structs.replace(place, column=name, value=name) for name in absent]

    def records(self, faults: list[Fault] | None = None) -> Iterator[Record]:
        """Stream the records.

        Args:
            faults: takes records that have another number of cells than the header, and reading goes on after them;
                without it the first one raises.

        Raises:
            TableError: what makes the rest of the file unreadable: a quote that is wrong, or text that is not UTF-8.
        """
        width = len(self.header)
        row = -1
        try:
            for line, cells in self._parse():
                row += 1
                if len(cells) == width:
                    if row:
                        yield Record(row, line, cells)
                    continue
                if faults is None:
                    raise TableError(self._wrong_width(row, line, cells))
                faults.append(self._wrong_width(row, line, cells))
        except _QuoteError as error:
            fault = self.fault(error.fault.message, row=row + 1, line=error.fault.line)
            raise TableError(fault) from error

    def fault(
        self, message: str, *, row: int | None = None, line: int | None = None, column: str | None = None
    ) -> Fault:
        """A fault of this file."""
        return Fault(message=message, file=str(self.path), row=row, line=line, column=column)

    def _wrong_width(self, row: int, line: int, cells: list[str]) -> Fault:
        width = len(self.header)
        advice = f"Put text that holds {self.delimiter!r}, quotes or a line break into double quotes."
        message = f"the record has {len(cells)} cell{'s' * (len(cells) != 1)}, the header has {width}. {advice}"
        return self.fault(message, row=row, line=line)

    def _parse(self) -> Iterator[tuple[int, list[str]]]:
        """All records, the header first, each with the line it starts on."""
        csv.field_size_limit(_LARGEST_CELL)
        with self._open() as stream:
            lines = _Lines(stream, self._comments)
            try:
                for cells in csv.reader(lines, delimiter=self.delimiter, strict=True):
                    blank = not cells or (len(cells) == 1 and len(self.header) != 1 and not cells[0].strip())
                    if not blank:
                        yield lines.record_line, cells
                    lines.between_records = True
            except csv.Error as error:
                raise _QuoteError(self.fault(_quote_fault(error), line=lines.record_line)) from error
            except UnicodeDecodeError as error:
                raise TableError(self._not_utf8()) from error

    def _find_delimiter(self) -> str:
        """What ``sep=`` says, else the delimiter that stands most often outside the quotes of the header, or ``;``."""
        header = ""
        try:
            with self._open() as stream:
                lines = _Lines(stream, self._comments)
                for line in lines:
                    if lines.separator:
                        return lines.separator
                    header += line
                    if header.strip() and header.count('"') % 2 == 0:
                        break
        except UnicodeDecodeError as error:
            raise TableError(self._not_utf8()) from error
        bare = _QUOTED.sub("", header)
        return max(DELIMITERS, key=bare.count)

    def _open(self) -> TextIO:
        try:
            stream = self.path.open("rb")
        except OSError as error:
            raise TableError(self.fault(f"the file cannot be read: {error.strerror or error}.")) from error
        start = stream.peek(4)[:4]
        reason = _NO_TABLES.get(start)
        if start[:2] in _BYTE_ORDER_MARKS_16 or b"\0" in start[:2]:
            reason = "the file is UTF-16, not UTF-8."
        if reason:
            stream.close()
            raise TableError(self.fault(f"{reason} {_SAVE_AS}"))
        return _text_stream(stream)

    def _not_utf8(self) -> Fault:
        """The fault that says on which line the first byte stands that is no UTF-8."""
        content = self.path.read_bytes()
        try:
            content.decode("utf-8")
        except UnicodeDecodeError as error:
            if b"\0" in content[:_LOOKED_AT]:
                return self.fault("this is no text file; a table in CSV is needed.")
            before = content[: error.start].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            message = f"the text is not UTF-8 (byte 0x{content[error.start]:02X}). {_SAVE_AS}"
            return self.fault(message, line=before.count(b"\n") + 1)
        return self.fault(f"the text is not UTF-8. {_SAVE_AS}")


_SAVE_AS = "Save it as UTF-8 (in a spreadsheet program: 'CSV UTF-8')."
_LOOKED_AT = 4096


class _Lines:
    """Physical lines, counted; comment lines between records are left out, and so is a first line ``sep=;``.

    Attributes:
        separator: what that line says; empty without it.
    """

    def __init__(self, stream: TextIO, comments: bool) -> None:
        self._stream = stream
        self._comments = comments
        self.between_records = True
        self.record_line = 0
        self.separator = ""

    def __iter__(self) -> Iterator[str]:
        for number, line in enumerate(self._stream, 1):
            if number == 1 and (match := _SEPARATOR.fullmatch(line)):
                self.separator = match[1]
                continue
            if self.between_records:
                if self._comments and line.startswith("#"):
                    continue
                self.between_records = False
                self.record_line = number
            yield line


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]], delimiter: str = ";") -> None:
    """Write a table in one step: readers see the old file or the new one, never a part.

    Args:
        path: the file; its folder must be there.
        header: the columns' names.
        rows: one value for each column, streamed; text as it is, None as an empty cell, others as ``str`` has them.
        delimiter: what separates the cells.

    Raises:
        RunError: the file cannot be written; it is then as it was before.
    """
    try:
        with written_whole(path) as beside, beside.open("wb") as stream:
            stream.write(b"\xef\xbb\xbf")
            # The header of a single column does not tell a reader the delimiter, so nothing may look like one.
            writer = csv.writer(
                _Utf8(stream),
                delimiter=delimiter,
                lineterminator="\r\n",
                quoting=csv.QUOTE_ALL if len(header) == 1 else csv.QUOTE_MINIMAL,
            )
            writer.writerow(header)
            writer.writerows(rows)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}. Is it open in another program?") from error


class _Utf8:
    """Encodes each record; a lone surrogate becomes U+FFFD."""

    def __init__(self, stream: BinaryIO) -> None:
        self._write = stream.write

    def write(self, text: str) -> None:
        try:
            encoded = text.encode()
        except UnicodeEncodeError:
            encoded = _SURROGATE.sub("\ufffd", text).encode()
        self._write(encoded)


def _text_stream(stream: BinaryIO) -> TextIO:
    return io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")


def _quote_fault(error: csv.Error) -> str:
    if "unexpected end" in str(error):
        return "a double quote that opens a cell of this record is never closed."
    return "a quoted cell goes on after its closing quote; write a quote inside a quoted cell twice."
