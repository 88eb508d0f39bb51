"""The pairs to score for a chunk of rows: one a row, and one more for each further accepted answer of a row."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from vlmhb.contract.metric import Metric, Pairs
from vlmhb.data.details import Details, read_details
from vlmhb.errors import PluginError
from vlmhb.metrics.answers import split_answers
from vlmhb.metrics.normalise import TextNormaliser

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars

    from vlmhb.contract.metric import Column


class Candidates:
    """References and answers of the scored rows of a chunk.

    Args:
        frame: the texts ``reference`` and ``answer`` (null counts as empty), and ``details`` (as
            :func:`vlmhb.data.details.details_of` writes them) and ``finish_reason``, both of which may be missing.
        normaliser: what both sides go through.
    """

    def __init__(self, frame: polars.DataFrame, normaliser: TextNormaliser) -> None:
        import numpy as np
        import polars as pl

        self._frame = frame
        self._normaliser = normaliser
        self._details: dict[int, Details] = {}
        if "details" in frame.columns:
            places = (frame["details"].fill_null("") != "").arg_true()
            details = map(read_details, frame["details"].gather(places).to_list())
            self._details = dict(zip(places.to_list(), details, strict=True))
        more = [(place, text) for place, row in self._details.items() for text in row.other_references]
        self._row: npt.NDArray[np.int64] | None = None
        self._raw_reference = frame["reference"].fill_null("")
        self._raw_answer, self.flags = split_answers(frame["answer"].fill_null(""))
        self.answer = normaliser.column(self._raw_answer)
        if more:
            self._row = np.concatenate([np.arange(len(frame)), [place for place, _ in more]]).astype(np.int64)
            others = pl.Series([text for _, text in more], dtype=pl.String)
            self._raw_reference = pl.concat([self._raw_reference, others])
        self._reference = normaliser.column(self._raw_reference)

    def score(self, metric: Metric) -> dict[str, Column]:
        """The metric of each row: ``value`` and its parts, those of the best of a row's accepted answers.

        Raises:
            PluginError: the metric broke its contract.
        """
        import numpy as np

        pairs = self._raw_pairs if metric.raw else self._pairs
        found = dict(metric.score(pairs))
        for part, numbers in found.items():
            if len(numbers) != len(pairs) or not np.isfinite(numbers).all():
                raise PluginError(f"the metric {metric.name} did not give a finite {part} for each of its pairs")
        return found if self._row is None else self._best(found, metric.higher_is_better)

    @property
    def right(self) -> npt.NDArray[np.bool_]:
        """For each row whether its answer equals one of the accepted ones."""
        import numpy as np

        same = ~self._pairs.differ
        if self._row is None:
            return same
        found = np.zeros(len(self._frame), dtype=np.bool_)
        np.logical_or.at(found, self._row, same)
        return found

    def _best(self, found: Mapping[str, Column], higher_is_better: bool) -> dict[str, Column]:
        import numpy as np

        assert self._row is not None
        loss = -found["value"] if higher_is_better else found["value"]
        order = np.lexsort((np.arange(len(loss)), loss, self._row))  # by row, best first, of equal ones the first
        _, first = np.unique(self._row[order], return_index=True)
        best = order[first]
        return {part: numbers[best] for part, numbers in found.items()}

    @cached_property
    def _pairs(self) -> Pairs:
        return self._make(self._reference, self._spread(self.answer))

    @cached_property
    def _raw_pairs(self) -> Pairs:
        return self._make(self._raw_reference.str.strip_chars(), self._spread(self._raw_answer).str.strip_chars())

    def _make(self, references: polars.Series, answers: polars.Series) -> Pairs:
        reasons = self._frame["finish_reason"] if "finish_reason" in self._frame.columns else None
        return Pairs(
            references,
            answers,
            generated=self._spread(self._frame["answer"].fill_null("")),
            finish_reasons=None if reasons is None else self._spread(reasons.fill_null("")),
            choices=[details.choices for details in self._each()] if self._details else None,
            json_schemas=[details.json_schema for details in self._each()] if self._details else None,
            normalise=self._normaliser.text,
        )

    def _each(self) -> list[Details]:
        none = Details()
        rows = range(len(self._frame)) if self._row is None else self._row.tolist()
        return [self._details.get(row, none) for row in rows]

    def _spread(self, column: polars.Series) -> polars.Series:
        return column if self._row is None else column.gather(self._row)
