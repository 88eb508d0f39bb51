"""The records of a table as a dataset's samples, those that cannot be asked in their places."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from vlmhb.contract.dataset import Sample
from vlmhb.data.tables import Table, TableError
from vlmhb.errors import DatasetError, Fault


def samples_of(table: Table, sample: Callable[[int, list[str]], Sample]) -> Iterator[Sample]:
    """What ``sample`` makes of each record, given its number and cells; malformed records become rows with a problem.

    Raises:
        DatasetError: the table cannot be read to its end.
    """
    malformed: list[Fault] = []
    try:
        for record in table.records(malformed):
            if malformed:
                yield from _malformed_rows(malformed)
            yield sample(record.row, record.cells)
        yield from _malformed_rows(malformed)
    except TableError as error:
        raise DatasetError(str(error)) from error


def _malformed_rows(malformed: list[Fault]) -> Iterator[Sample]:
    """Rows that cannot be asked, for the malformed records that a table has noted; the list is emptied."""
    for fault in malformed:
        assert fault.row is not None
        yield Sample(row=fault.row, data_index="", images=(), question="", reference="", problem=str(fault))
    malformed.clear()
