"""What a metric is: a name, and numbers for many pairs of reference and answer at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Column = npt.NDArray[np.float64]


class Metric(ABC):
    """One metric. Stateless; one object scores any number of batches.

    Attributes:
        name: key in files and columns, lower case, for example ``cer``.
        title: how people write it, for example ``CER``.
        aliases: other names accepted in configs; case and the signs ``-_ `` do not count.
        higher_is_better: the direction of the metric.
        failed_value: the value of a row without an answer in the ``errors_as_wrong`` reading.
        source: the definition's source, for the documentation.
    """

    name: str
    title: str
    aliases: tuple[str, ...] = ()
    higher_is_better: bool = False
    failed_value: float = 0.0
    source: str = ""

    @abstractmethod
    def score(self, references: Sequence[str], answers: Sequence[str]) -> Mapping[str, Column]:
        """Score pairs.

        Args:
            references: the right answers, normalised and stripped at both ends.
            answers: the model's answers, treated likewise, in the same order.

        Returns:
            Arrays of the pairs' length, every number finite. ``value`` is the metric of each pair; every other array
            is added up over a group and handed to :meth:`corpus` (for CER: ``edits`` and ``length``).
        """

    def corpus(self, sums: Mapping[str, Column]) -> Column | None:
        """The metric over whole groups, from the sums of what :meth:`score` returned beside ``value``.

        Args:
            sums: for each of those names an array with one sum a group.

        Returns:
            One number a group, NaN where a group has none; or None if the metric has no such reading at all.
        """
        return None
