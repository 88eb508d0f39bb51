"""Date equality, with the day or the month first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vlmhb.contract.metric import Metric, Pairs
from vlmhb.metrics.calendar_dates import read_date

if TYPE_CHECKING:
    from vlmhb.contract.metric import Column


class DateMatch(Metric):
    """1 if both texts name the same day, however it is written, else 0: ``05.03.2024`` is ``2024-03-05``.

    :func:`vlmhb.metrics.calendar_dates.read_date` says what a date is; the day stands before the month where both are
    figures and the year is last. A reference that is no date is compared as text.
    """

    name = "date_match"
    title = "Date match"
    aliases: tuple[str, ...] = ("date",)
    higher_is_better = True
    bounds = (0.0, 1.0)
    source = "vlmhb: equality of the days"
    day_first = True

    def score(self, pairs: Pairs) -> Mapping[str, Column]:
        """``value`` only: the mean is the share of right dates."""
        import numpy as np

        value = np.ones(len(pairs))
        value[pairs.differ] = [self._same(*pair) for pair in zip(*pairs.different, strict=True)]
        return {"value": value}

    def _same(self, reference: str, answer: str) -> bool:
        right = read_date(reference, day_first=self.day_first)
        return right is not None and right == read_date(answer, day_first=self.day_first)


class DateMatchMonthFirst(DateMatch):
    """Date equality where ``05/03/2024`` is the third of May, as in the United States."""

    name = "date_match_month_first"
    title = "Date match (month first)"
    aliases = ()
    day_first = False
