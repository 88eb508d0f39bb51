"""ANLS*: ANLS over the values of structured answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from vlmhb.contract.metric import Metric, Pairs
from vlmhb.metrics.assignment import best_pairs
from vlmhb.metrics.structured import NOTHING, is_structure, read_json

if TYPE_CHECKING:
    from vlmhb.contract.metric import Column


class Score(NamedTuple):
    """The sum of the similarities of the values that were compared, and how many values count."""

    total: float
    size: int

    @property
    def mean(self) -> float:
        return self.total / self.size if self.size else 1.0


class Comparison:
    """Compares values with each other.

    Args:
        at_half: the similarity of two texts at a distance of exactly 0.5.
        normalise: applied to every text first.
    """

    def __init__(self, at_half: float, normalise: Callable[[str], str] = str.strip) -> None:
        self._at_half = at_half
        self._normalise = normalise

    def of_texts(self, reference: str, answer: str) -> float:
        """ANLS* of an answer; JSON in it counts where the reference is a JSON object or list."""
        right = read_json(reference)
        if not is_structure(right):
            return self._leaf(reference, answer)
        given = read_json(answer)
        return self.of_values(right, answer if given is NOTHING else given).mean

    def of_values(self, right: Any, given: Any) -> Score:
        """Two values of any kind that JSON has."""
        if right is None:
            return Score(float(_is_empty(given)), max(1, _size(given)))
        if isinstance(right, dict) and isinstance(given, dict):
            return self._objects(right, given)
        if isinstance(right, list) and isinstance(given, list):
            return self._lists(right, given)
        if is_structure(right) or is_structure(given) or given is None:
            return Score(0.0, max(_size(right), _size(given)))
        return Score(self._leaf(str(right), str(given)), 1)

    def _objects(self, right: dict[str, Any], given: dict[str, Any]) -> Score:
        total, size = 0.0, 0
        for key in right.keys() | given.keys():
            found = self.of_values(right.get(key), given.get(key))
            size += found.size
            total += found.total if key in right else 0.0
        return Score(total, size)

    def _lists(self, right: Sequence[Any], given: Sequence[Any]) -> Score:
        scores = [[self.of_values(one, other) for other in given] for one in right]
        # Of equally good pairings one with equal items is taken, as the reference implementation does.
        means = [
            [score.mean + 1e-12 * (one == other) for other, score in zip(given, line, strict=True)]
            for one, line in zip(right, scores, strict=True)
        ]
        pairs = best_pairs(means)
        rows, columns = {row for row, _ in pairs}, {column for _, column in pairs}
        alone = [item for at, item in enumerate(right) if at not in rows]
        alone += [item for at, item in enumerate(given) if at not in columns]
        size = sum(scores[row][column].size for row, column in pairs) + sum(map(_size, alone))
        return Score(sum(scores[row][column].total for row, column in pairs), size)

    def _leaf(self, reference: str, answer: str) -> float:
        from rapidfuzz.distance import Levenshtein

        left, right = (" ".join(self._normalise(text).lower().split()) for text in (reference, answer))
        longer = max(len(left), len(right))
        edits = Levenshtein.distance(left, right)
        if 2 * edits == longer:
            return self._at_half if longer else 1.0
        return 1.0 - edits / longer if 2 * edits < longer else 0.0


class AnlsStar(Metric):
    """ANLS of the values of two JSON structures: the sum of their similarities over how many there are.

    Objects are compared key by key; of lists the best pairing of their items counts, in any order. A key or item that
    only one side has gives 0 for each of its values; a ``null`` in the reference is met by ``null``, an empty text or
    structure, or no such key. Values of different kinds (a text and a list) are wholly unlike; single values are
    compared as ``anls`` compares. A reference that is no JSON object or list is one value, and so is the answer to it.
    At a distance of exactly 0.5 a value gives 0, as in ``anls``; ``anls_star_inclusive`` is the other reading.
    """

    name = "anls_star"
    title = "ANLS*"
    higher_is_better = True
    bounds = (0.0, 1.0)
    source = "Peer et al. (2024), arXiv:2402.03848, with the threshold of Biten et al. (2019), arXiv:1905.13648"
    raw = True
    at_half = 0.0

    def score(self, pairs: Pairs) -> Mapping[str, Column]:
        """``value`` only: ANLS* is by definition the mean over the rows."""
        import numpy as np

        compare = Comparison(self.at_half, pairs.normalise)
        value = np.ones(len(pairs))
        value[pairs.differ] = [compare.of_texts(*pair) for pair in zip(*pairs.different, strict=True)]
        return {"value": value}


class AnlsStarInclusive(AnlsStar):
    """ANLS* as the reference implementation (anls_star 1.0) computes it: a distance of exactly 0.5 counts as 0.5."""

    name = "anls_star_inclusive"
    title = "ANLS* (0.5 counts)"
    source = "Peer et al. (2024), arXiv:2402.03848, as in anls_star 1.0"
    at_half = 0.5


def _size(value: Any) -> int:
    """How many single values a structure has; a missing one counts as one."""
    if is_structure(value):
        return sum(_size(inner) for inner in (value.values() if isinstance(value, dict) else value))
    return 1


def _is_empty(value: Any) -> bool:
    return value is None or value == "" or value in ({}, [])
