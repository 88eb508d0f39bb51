"""The row filters of a config, checked against the values that the dataset has."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable

from vlmhb.config.cells import CellError, parse_names
from vlmhb.config.names import nearest
from vlmhb.config.sheet import Row
from vlmhb.contract.dataset import Dataset
from vlmhb.errors import DatasetError, Fault

DOC_CLASS, QUESTION_TYPE, TABLES = "filter_doc_class", "filter_question_type", "metrics_aggregators"
_LOOKED_AT = 200
_MOST_NAMED = 12


class Groups:
    """Which pairs of doc class and question type each dataset has; a dataset is read when a filter needs it."""

    def __init__(self) -> None:
        self._pairs: dict[int, frozenset[tuple[str, str]]] = {}

    def of(self, dataset: Dataset) -> frozenset[tuple[str, str]]:
        """The pairs of a dataset.

        Raises:
            DatasetError: the dataset cannot be read to its end.
        """
        if id(dataset) not in self._pairs:
            self._pairs[id(dataset)] = frozenset((sample.doc_class, sample.question_type) for sample in dataset)
        return self._pairs[id(dataset)]


def filters_of(
    row: Row, dataset: Dataset, groups: Groups, faults: list[Fault]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The doc classes and question types that a row takes; empty takes all.

    A cell that is a value of the dataset as it stands means that value; any other is read as a list. Every value must
    be one of the dataset's, and at least one row must be left.
    """
    if not (row.text(DOC_CLASS) or row.text(QUESTION_TYPE)):
        return (), ()
    try:
        pairs = groups.of(dataset)
    except DatasetError as error:
        faults.append(row.fault("dataset", str(error)))
        return (), ()
    before = len(faults)
    classes = _values(row, DOC_CLASS, {doc_class for doc_class, _ in pairs}, faults)
    types = _values(row, QUESTION_TYPE, {question_type for _, question_type in pairs}, faults)
    left = any((not classes or c in classes) and (not types or t in types) for c, t in pairs)
    if not left and len(faults) == before:
        message = f"no row of {dataset.name} is of doc class {row.text(DOC_CLASS)!r} and of this question type."
        faults.append(row.fault(QUESTION_TYPE, message))
    return classes, types


def check_tables(row: Row, dataset: Dataset, tables: Iterable[str], faults: list[Fault]) -> None:
    """Tables by columns: each column must be one that the first rows of the dataset have."""
    from vlmhb.metrics.grouping import BY, ROW_COLUMNS, columns_of

    wanted = {name for table in tables if table.startswith(BY) for name in columns_of(table)} - {*ROW_COLUMNS}
    if not wanted:
        return
    try:
        there = dict.fromkeys(name for sample in itertools.islice(dataset, _LOOKED_AT) for name in sample.fields)
    except DatasetError as error:
        faults.append(row.fault("dataset", str(error)))
        return
    for name in sorted(wanted - there.keys()):
        near = nearest(name, [*ROW_COLUMNS, *there])
        hint = f"Did you mean {near}?" if near else f"It has {', '.join([*ROW_COLUMNS, *there])}."
        faults.append(row.fault(TABLES, f"the dataset has no column {name!r}.", hint))


def _values(row: Row, column: str, there: Collection[str], faults: list[Fault]) -> tuple[str, ...]:
    text = row.text(column)
    spelled = {value.strip(): value for value in there}
    if not text or text in spelled:
        return (spelled[text],) if text else ()
    try:
        wanted = parse_names(text)
    except CellError as error:
        faults.append(row.fault(column, str(error), error.hint))
        return ()
    for value in wanted:
        if value.strip() not in spelled:
            near = nearest(value, spelled)
            some = ", ".join(sorted(spelled)[:_MOST_NAMED]) + (", ..." if len(spelled) > _MOST_NAMED else "")
            hint = f"Did you mean {near}?" if near else f"It has {some}."
            faults.append(row.fault(column, f"the dataset has no row with {value!r}.", hint))
    return tuple(dict.fromkeys(spelled[value.strip()] for value in wanted if value.strip() in spelled))
