"""From pairs of reference and answer to numbers a row and tables a group, chunk by chunk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vlmhb.contract.metric import Metric
from vlmhb.metrics.candidates import Candidates
from vlmhb.metrics.grouping import AGGREGATORS, columns_of
from vlmhb.metrics.groups import GroupSums, sums_by
from vlmhb.metrics.normalise import TextNormaliser
from vlmhb.metrics.page_units import PageUnits

if TYPE_CHECKING:
    import polars

PAGE = "data_index"
"""Rows with one value of it are about one page, and not independent."""

_UNIT = "/unit"  # no metric's column: their names hold no slash at the start
_COUNTS = ("count", "scored", "errors", "missing")
KEYS = ("row", "data_index", "doc_class", "question_type", "status")


class Scorer:
    """Scores rows in chunks of any size and keeps the sums of every group.

    Memory grows with the number of groups, not of rows.

    Args:
        metrics: what to compute, in the order of the columns.
        normalizers: names for :class:`vlmhb.metrics.normalise.TextNormaliser`, applied to both sides.
        tables: what :func:`vlmhb.metrics.grouping.columns_of` takes; those with names when None.

    Attributes:
        further: columns that the tables need beside :data:`KEYS`.

    Raises:
        ConfigError: an unknown normaliser.
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        normalizers: str | Sequence[str] | None = None,
        tables: Sequence[str] | None = None,
    ) -> None:
        self.metrics = tuple(metrics)
        self.normaliser = TextNormaliser(normalizers)
        numbers = self._numbers(Candidates(_no_rows(), self.normaliser)).columns
        # A table whose keys are among another's is made from that one's groups. Where a group is of many pages, the
        # sums are kept page by page, for the intervals.
        groups = [columns_of(table) for table in (AGGREGATORS if tables is None else tables)]
        self.further = tuple(dict.fromkeys(name for keys in groups for name in keys if name not in KEYS))
        kept = [keys if PAGE in keys else (*keys, _UNIT) for keys in groups]
        finest = [keys for keys in kept if not any(set(keys) < set(others) for others in kept)]
        self._groups = {keys: GroupSums(keys, _COUNTS, numbers, whole=(_UNIT,)) for keys in finest}
        self._units = PageUnits()

    def add(self, frame: polars.DataFrame) -> polars.DataFrame:
        """Score the rows of a chunk and add them to the tables.

        Args:
            frame: ``row`` (int) and the texts ``data_index``, ``doc_class``, ``question_type``, ``reference``,
                ``answer`` and ``status`` (``ok``, ``error`` or ``missing``). Only rows with status ``ok`` are scored;
                a null answer of such a row counts as empty. ``details`` and ``finish_reason`` may be there as well
                (:class:`vlmhb.metrics.candidates.Candidates`); of several accepted answers the best counts. The
                texts :attr:`further`, where there are some.

        Returns:
            The rows in the same order: :data:`KEYS`, ``scored_answer`` (the text compared with the reference),
            ``flags`` (comma-joined, see :mod:`vlmhb.metrics.answers`), ``right`` (whether that text equals an accepted
            answer) and one float column a metric; null for rows that were not scored.

        Raises:
            PluginError: a metric broke its contract.
        """
        import polars as pl

        is_scored = frame["status"] == "ok"
        rows = Candidates(frame.filter(is_scored), self.normaliser)
        numbers = self._numbers(rows)
        texts = pl.DataFrame({"scored_answer": rows.answer, "flags": rows.flags, "right": rows.right})
        found = texts.hstack(numbers)
        if len(found) < len(frame):
            found = _spread(found, is_scored)
        self._count(frame, found.select(numbers.columns))
        return frame.select(KEYS).hstack(found.select([*texts.columns, *(metric.name for metric in self.metrics)]))

    def _count(self, frame: polars.DataFrame, numbers: polars.DataFrame) -> None:
        import polars as pl

        scored, errors = pl.col("status") == "ok", pl.col("status") == "error"
        counts = (pl.lit(1), scored, errors, ~(scored | errors))
        rows = frame.with_columns(what.cast(pl.Int64).alias(name) for name, what in zip(_COUNTS, counts, strict=True))
        rows = rows.hstack(numbers).with_columns(pl.Series(_UNIT, self._units.of(frame[PAGE])))
        for groups in self._groups.values():
            groups.add(rows)

    def _sums(self, keys: tuple[str, ...]) -> polars.DataFrame:
        finest, groups = next((k, g) for k, g in self._groups.items() if set(keys) <= set(k))
        sums = groups.sums()
        return sums if keys == finest else sums_by(keys, sums.drop(name for name in finest if name not in keys))

    def _numbers(self, rows: Candidates) -> polars.DataFrame:
        """Each metric's value under its name, and its parts for the corpus reading under ``<name>/<part>``."""
        import polars as pl

        columns: dict[str, pl.Series] = {}
        for metric in self.metrics:
            for part, numbers in rows.score(metric).items():
                columns[_column(metric, part)] = pl.Series(numbers, dtype=pl.Float64)
        return pl.DataFrame(columns)

    def table(self, aggregator: str) -> polars.DataFrame:
        """One table over all rows added so far, groups in the order of their first row.

        Args:
            aggregator: one of the tables that the scorer was made for.

        Returns:
            The group's columns, ``count`` (all its rows), ``scored``, ``errors`` and ``missing``, and for each metric
            ``<name>_mean`` (over the scored rows), ``<name>_low`` and ``<name>_high`` (its 95 % interval, see
            :mod:`vlmhb.stats.interval`; not in ``by_id``), ``<name>_corpus`` where the metric has that reading, and
            ``<name>_errors_as_wrong`` (the mean over all rows, those without an answer taken at the metric's
            ``failed_value``). A value that does not exist is null.
        """
        import polars as pl

        keys = columns_of(aggregator)
        sums = self._sums(keys)
        intervals = {} if PAGE in keys else self._intervals(keys, sums)
        count, scored = pl.col("count"), pl.col("scored")
        columns: list[pl.Expr | pl.Series | str] = [*keys, *_COUNTS]
        for metric in self.metrics:
            total = pl.col(metric.name)
            columns.append(pl.when(scored > 0).then(total / scored).alias(f"{metric.name}_mean"))
            columns += intervals.get(metric.name, ())
            corpus = self._corpus(metric, sums)
            if corpus is not None:
                columns.append(corpus.alias(f"{metric.name}_corpus"))
            total_with_failed = total + (count - scored) * metric.failed_value
            as_wrong = pl.when(count > 0).then(total_with_failed / count)
            columns.append(as_wrong.alias(f"{metric.name}_errors_as_wrong"))
        return sums.select(columns)

    def _intervals(self, keys: tuple[str, ...], sums: polars.DataFrame) -> dict[str, list[polars.Series]]:
        """For each metric the ends of the interval of every group's mean, pages drawn as a whole."""
        import polars as pl

        from vlmhb.stats.interval import intervals_of_groups

        names = [metric.name for metric in self.metrics]
        bounds = [metric.bounds for metric in self.metrics]
        pages = self._sums((*keys, _UNIT))
        groups = [pages] if not keys else pages.partition_by(keys, maintain_order=True)
        by_group = {tuple(group.select(keys).row(0)) if keys else (): group for group in groups}
        ordered = [by_group[key] for key in (sums.select(keys).rows() if keys else [()])]
        found = intervals_of_groups(
            [(group.select(names).to_numpy(), group["scored"].to_numpy().astype(float)) for group in ordered],
            bounds=bounds,
        )
        ends: dict[str, list[pl.Series]] = {}
        for at, name in enumerate(names):
            spans = [group[at] for group in found]
            low = pl.Series(f"{name}_low", [span and span.low for span in spans], dtype=pl.Float64)
            high = pl.Series(f"{name}_high", [span and span.high for span in spans], dtype=pl.Float64)
            ends[name] = [low, high]
        return ends

    def _corpus(self, metric: Metric, sums: polars.DataFrame) -> polars.Series | None:
        """The metric's corpus reading of every group, null where the group has none or no scored row."""
        import numpy as np
        import polars as pl

        prefix = _column(metric, "")
        parts = {name.removeprefix(prefix): sums[name].to_numpy() for name in sums.columns if name.startswith(prefix)}
        found = metric.corpus(parts)
        if found is None:
            return None
        return pl.Series(np.where(sums["scored"].to_numpy() > 0, found, np.nan), nan_to_null=True)


def _no_rows() -> polars.DataFrame:
    import polars as pl

    return pl.DataFrame(schema={"reference": pl.String, "answer": pl.String})


def _column(metric: Metric, part: str) -> str:
    return metric.name if part == "value" else f"{metric.name}/{part}"


def _spread(scored: polars.DataFrame, is_scored: polars.Series) -> polars.DataFrame:
    """The rows of ``scored`` at the places where ``is_scored`` holds, nulls at the others."""
    import polars as pl

    place = pl.when(is_scored).then(is_scored.cum_sum().cast(pl.Int64) - 1)
    return scored.select(pl.all().gather(pl.select(place).to_series()))
