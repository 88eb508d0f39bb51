"""How many fields of a structured answer are right: precision, recall and their harmonic mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from vlmhb.contract.metric import Metric, Pairs
from vlmhb.metrics.structured import NOTHING, fields, is_structure, read_json

if TYPE_CHECKING:
    from vlmhb.contract.metric import Column


class JsonF1(Metric):
    """Harmonic mean of precision and recall over the fields of a JSON answer, 0 to 1.

    A field is a place in the structure with a single value (:func:`vlmhb.metrics.structured.fields`); it is right when
    the reference has the same value at the same place, under the run's normalisers. Lists are compared in their order.
    An answer that is no JSON has no fields. A reference that is no JSON object or list is one field, and so is the
    answer to it. Neither side having a field gives 1. The corpus reading counts the fields of all rows of the group.
    """

    name = "json_f1"
    title = "JSON F1"
    higher_is_better = True
    bounds = (0.0, 1.0)
    source = "van Rijsbergen (1979), over the fields of the two structures"
    raw = True

    def score(self, pairs: Pairs) -> Mapping[str, Column]:
        """``value``, and for the corpus reading the fields that are right, the answer's and the reference's."""
        import numpy as np

        rows = zip(pairs.references, pairs.answers, strict=True)
        counts = np.array([_counts(*row, pairs.normalise) for row in rows], dtype=np.float64).reshape(-1, 3)
        right, given, wanted = counts.T
        value = np.where((given == 0) & (wanted == 0), 1.0, self._rate(right, given, wanted))
        return {"value": value, "right": right, "given": given, "wanted": wanted}

    def corpus(self, sums: Mapping[str, Column]) -> Column:
        """The rate over the fields of all rows; NaN where there are none."""
        import numpy as np

        right, given, wanted = (sums[name] for name in ("right", "given", "wanted"))
        rates: Column = np.where((given == 0) & (wanted == 0), np.nan, self._rate(right, given, wanted))
        return rates

    def _rate(self, right: Column, given: Column, wanted: Column) -> Column:
        return _divided(2 * right, given + wanted)


class JsonPrecision(JsonF1):
    """The share of the answer's fields that are right; see ``json_f1``. No fields where some are wanted gives 0."""

    name = "json_precision"
    title = "JSON precision"

    def _rate(self, right: Column, given: Column, wanted: Column) -> Column:
        return _divided(right, given)


class JsonRecall(JsonF1):
    """The share of the reference's fields that the answer has right; see ``json_f1``. Fields beyond it give 0."""

    name = "json_recall"
    title = "JSON recall"

    def _rate(self, right: Column, given: Column, wanted: Column) -> Column:
        return _divided(right, wanted)


def _divided(part: Column, whole: Column) -> Column:
    import numpy as np

    rate: Column = np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)
    return rate


def _counts(reference: str, answer: str, normalise: Callable[[str], str]) -> tuple[int, int, int]:
    """How many fields are right, how many the answer has, and how many the reference."""
    right = read_json(reference)
    if is_structure(right):
        given = read_json(answer)
        ours = fields(given, normalise) if given is not NOTHING else {}
    else:
        right, ours = reference, fields(answer, normalise)
    theirs = fields(right, normalise)
    return sum(theirs.get(place) == text for place, text in ours.items()), len(ours), len(theirs)
