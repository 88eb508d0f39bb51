"""What a metric is: a name, and numbers for many pairs of reference and answer at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars

    Column = npt.NDArray[np.float64]


class Pairs:
    """References and the answers to them, normalised and stripped at both ends, in one order.

    Most metrics need :attr:`references` and :attr:`answers` only. The other attributes let a metric work in bulk and
    leave out the pairs that are equal, which are most of them where a model is good. All are made on first use.

    Args:
        references: the right answers; a sequence, or a polars column without nulls.
        answers: the model's answers, as many.
        generated: the answers as the model wrote them, thinking included; the answers when not given.
        finish_reasons: why each answer ended (``stop``, ``length``), empty where nobody knows.
        choices: the texts of each question's options, in their order; none where it has no options.
        json_schemas: the JSON Schema that each answer should follow, as text; empty where there is none.
        normalise: the run's text normalisers as one function, for metrics that look into the texts themselves.
    """

    def __init__(
        self,
        references: Sequence[str] | polars.Series,
        answers: Sequence[str] | polars.Series,
        *,
        generated: Sequence[str] | polars.Series | None = None,
        finish_reasons: Sequence[str] | polars.Series | None = None,
        choices: Sequence[Sequence[str]] | None = None,
        json_schemas: Sequence[str] | None = None,
        normalise: Callable[[str], str] = str.strip,
    ) -> None:
        import polars as pl

        self.reference_column = pl.Series(references, dtype=pl.String)
        self.answer_column = pl.Series(answers, dtype=pl.String)
        self._generated = generated
        self._finish_reasons = finish_reasons
        self._choices = choices
        self._json_schemas = json_schemas
        self.normalise = normalise

    def __len__(self) -> int:
        return len(self.reference_column)

    @cached_property
    def references(self) -> list[str]:
        """The right answers."""
        return self.reference_column.to_list()

    @cached_property
    def answers(self) -> list[str]:
        """The model's answers."""
        return self.answer_column.to_list()

    @cached_property
    def generated(self) -> list[str]:
        """The answers as the model wrote them."""
        return self.answers if self._generated is None else list(self._generated)

    @cached_property
    def finish_reasons(self) -> list[str]:
        """Why each answer ended; empty where nobody knows."""
        return [""] * len(self) if self._finish_reasons is None else list(self._finish_reasons)

    @property
    def choices(self) -> Sequence[Sequence[str]]:
        """The texts of each question's options."""
        return [()] * len(self) if self._choices is None else self._choices

    @property
    def json_schemas(self) -> Sequence[str]:
        """The JSON Schema of each question, as text; empty where there is none."""
        return [""] * len(self) if self._json_schemas is None else self._json_schemas

    @cached_property
    def differ(self) -> npt.NDArray[np.bool_]:
        """For each pair whether its texts are not equal."""
        return (self.reference_column != self.answer_column).to_numpy()

    @cached_property
    def different(self) -> tuple[list[str], list[str]]:
        """References and answers of the pairs that :attr:`differ`."""
        differ = self.reference_column != self.answer_column
        return self.reference_column.filter(differ).to_list(), self.answer_column.filter(differ).to_list()


class Metric(ABC):
    """One metric. Stateless; one object scores any number of batches.

    Attributes:
        name: key in files and columns, lower case, for example ``cer``.
        title: how people write it, for example ``CER``.
        aliases: other names accepted in configs; case and the signs ``-_ `` do not count.
        higher_is_better: the direction of the metric.
        failed_value: the value of a row without an answer in the ``errors_as_wrong`` reading.
        source: the definition's source, for the documentation.
        raw: whether it gets the texts without the run's normalisers, to apply ``Pairs.normalise`` where it sees fit.
        packages: distributions beyond vlmhb's own that :meth:`score` needs; a config is refused when one is absent.
        install: what to install then, for the message; the packages themselves when empty.
        bounds: the least and the greatest value a pair can have, None where one of them does not exist (an error rate
            has no greatest). With them, a mean over rows that are all right, or all wrong, has an interval too.
    """

    name: str
    title: str
    aliases: tuple[str, ...] = ()
    higher_is_better: bool = False
    failed_value: float = 0.0
    source: str = ""
    raw: bool = False
    packages: tuple[str, ...] = ()
    install: str = ""
    bounds: tuple[float, float] | None = None

    def signature(self) -> str:
        """How exactly the corpus reading is computed, in the words of its library; empty when the name says it all."""
        return ""

    @abstractmethod
    def score(self, pairs: Pairs) -> Mapping[str, Column]:
        """Score pairs, any number of them, also none.

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
