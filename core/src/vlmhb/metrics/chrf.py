"""chrF."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from vlmhb.contract.metric import Metric, Pairs

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from vlmhb.contract.metric import Column

_ORDER = 6
_BETA = 2
_STATISTICS = tuple(f"{part}_{n}" for n in range(1, _ORDER + 1) for part in ("answer", "reference", "match"))


class Chrf(Metric):
    """F score of character n-grams of 1 to 6, whitespace left out, recall counting twice (beta 2); 0 to 100.

    The values of sacrebleu's sentence chrF; ``chrf_corpus`` is its corpus chrF over all scored rows of the group, from
    summed statistics. Precision and recall are averaged over those orders that both texts have, then combined. An
    empty answer or an empty reference gives 0, also when both are empty.
    """

    name = "chrf"
    title = "chrF"
    higher_is_better = True
    bounds = (0.0, 100.0)
    source = "Popović (2015), W15-3049, as in sacrebleu (Post, 2018, arXiv:1804.08771)"

    def signature(self) -> str:
        """sacrebleu's signature of the corpus reading."""
        from importlib.metadata import version

        return f"nrefs:1|case:mixed|eff:yes|nc:{_ORDER}|nw:0|space:no|version:{version('sacrebleu')}"

    def score(self, pairs: Pairs) -> Mapping[str, Column]:
        """``value``, and for the corpus reading the n-grams of answer and reference and those that match, by order."""
        import numpy as np

        counts = np.array(
            [_counts(answer, reference) for reference, answer in zip(pairs.references, pairs.answers, strict=True)],
            dtype=np.float64,
        ).reshape(len(pairs), len(_STATISTICS))
        return {"value": _f_scores(counts), **dict(zip(_STATISTICS, counts.T, strict=True))}

    def corpus(self, sums: Mapping[str, Column]) -> Column:
        """Corpus chrF of each group."""
        import numpy as np

        return _f_scores(np.stack([sums[name] for name in _STATISTICS], axis=1))


def _counts(answer: str, reference: str) -> list[int]:
    """For each order the n-grams of the answer, of the reference, and those that both have."""
    from sacrebleu.metrics.helpers import extract_all_char_ngrams

    found = []
    ours: Sequence[Mapping[str, int]] = extract_all_char_ngrams(answer, _ORDER)
    theirs: Sequence[Mapping[str, int]] = extract_all_char_ngrams(reference, _ORDER)
    for left, right in zip(ours, theirs, strict=True):
        whole = sum(left.values()) if right else 0  # no reference, no n-gram that could have been right
        found += [whole, sum(right.values()), sum(min(n, right[gram]) for gram, n in left.items() if gram in right)]
    return found


def _f_scores(counts: npt.NDArray[np.float64]) -> Column:
    """The F score of each line of :data:`_STATISTICS`, in percent."""
    import numpy as np

    answer, reference, match = (counts[:, part::3] for part in range(3))
    there = (answer > 0) & (reference > 0)
    orders = there.sum(axis=1)
    precision, recall = (
        np.divide(match, whole, out=np.zeros_like(match), where=there).sum(axis=1) / np.maximum(orders, 1)
        for whole in (answer, reference)
    )
    weight = _BETA**2
    below = weight * precision + recall
    scores: Column = 100 * np.divide(
        (1 + weight) * precision * recall, below, out=np.zeros(len(counts)), where=below > 0
    )
    return scores
