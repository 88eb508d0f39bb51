"""The tables that scores are summed up in: four with names, and any other by its columns (``by:split+currency``)."""

from __future__ import annotations

AGGREGATORS: dict[str, tuple[str, ...]] = {
    "general": (),
    "by_id": ("data_index",),
    "by_doc_question": ("doc_class", "question_type"),
    "by_doc_type": ("doc_class",),
}
"""The tables with names, and the columns whose values make a group. Another table is another line."""

BY = "by:"
ROW_COLUMNS = ("data_index", "doc_class", "question_type", "split")
"""What every row can be grouped by; the dataset's further columns stand beside them."""


def columns_of(table: str) -> tuple[str, ...]:
    """The columns whose values make a group of a table, given by its name or as ``by:`` and columns joined by ``+``.

    Raises:
        KeyError: there is no table with this name.
    """
    if not table.startswith(BY):
        return AGGREGATORS[table]
    return tuple(dict.fromkeys(name for part in table.removeprefix(BY).split("+") if (name := part.strip().casefold())))


def table_by(columns: str) -> str:
    """The table for columns as people write them: ``split, Currency`` is ``by:split+currency``."""
    return BY + "+".join(columns_of(f"{BY}{columns.replace(',', '+')}"))


def file_name(table: str) -> str:
    """What the file of a table is called, without its extension."""
    return table if not table.startswith(BY) else "by_" + "_".join(_safe(name) for name in columns_of(table))


def _safe(name: str) -> str:
    return "".join(sign if sign.isalnum() or sign in "-_." else "_" for sign in name)
