"""Running sums of groups of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars

_COMPACT_FROM = 500_000
"""Pending groups from which they are merged, so that memory grows with the number of different groups only."""


class GroupSums:
    """Numbers added up by group, over chunks of rows.

    Attributes:
        keys: the columns whose values make a group.

    Args:
        keys: text columns whose values make a group; none for one group of all rows.
        counts: integer columns to add up.
        numbers: float columns to add up; nulls are left out.
        whole: those of the keys that are whole numbers.
    """

    def __init__(
        self, keys: Sequence[str], counts: Sequence[str], numbers: Sequence[str], whole: Sequence[str] = ()
    ) -> None:
        import polars as pl

        self.keys = list(keys)
        types = ((keys, pl.String), (counts, pl.Int64), (numbers, pl.Float64))
        schema = {name: kind for names, kind in types for name in names}
        empty = pl.DataFrame(schema=schema | {name: pl.Int64 for name in keys if name in whole})
        self._columns = empty.columns
        self._parts = [sums_by(keys, empty)]
        self._pending = 0

    def add(self, rows: polars.DataFrame) -> None:
        """Add a chunk of rows that holds all the columns."""
        part = sums_by(self.keys, rows.select(self._columns))
        self._parts.append(part)
        self._pending += len(part)
        if self._pending > max(_COMPACT_FROM, len(self._parts[0])):
            self.sums()

    def sums(self) -> polars.DataFrame:
        """Keys and sums, one row a group, in the order of each group's first row."""
        import polars as pl

        if len(self._parts) > 1:
            self._parts = [sums_by(self.keys, pl.concat(self._parts))]
            self._pending = 0
        return self._parts[0]


def sums_by(keys: Sequence[str], frame: polars.DataFrame) -> polars.DataFrame:
    """Sums of all columns but the keys, one row a group in the order of first appearance; one row without keys."""
    import polars as pl

    if not keys:
        return frame.select(pl.all().sum())
    return frame.group_by(keys, maintain_order=True).agg(pl.all().sum())
