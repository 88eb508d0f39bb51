"""BLEU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vlmhb.contract.metric import Metric, Pairs

if TYPE_CHECKING:
    from vlmhb.contract.metric import Column

_ORDER = 4
_CORRECT = tuple(f"correct_{n}" for n in range(1, _ORDER + 1))
_TOTAL = tuple(f"total_{n}" for n in range(1, _ORDER + 1))
_STATISTICS = ("answer_length", "reference_length", *_CORRECT, *_TOTAL)


class Bleu(Metric):
    """Sentence BLEU by sacrebleu, 0 to 100: the answer is the hypothesis, the reference the only reference.

    13a tokens, exponential smoothing, effective order (``mean``). ``bleu_corpus`` is sacrebleu's corpus BLEU over all
    scored rows of the group, from summed statistics, with 13a tokens, exponential smoothing and always four orders.
    An empty answer or an empty reference gives 0, also when both are empty: there is no n-gram to agree on.
    """

    name = "bleu"
    title = "BLEU"
    higher_is_better = True
    bounds = (0.0, 100.0)
    source = "Papineni et al. (2002), ACL; Post (2018), arXiv:1804.08771 (sacrebleu)"

    def signature(self) -> str:
        """sacrebleu's signature of the corpus reading."""
        from importlib.metadata import version

        return f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{version('sacrebleu')}"

    def score(self, pairs: Pairs) -> Mapping[str, Column]:
        """``value``, and for the corpus reading lengths, matching and total n-grams of orders 1 to 4."""
        import numpy as np
        from sacrebleu.metrics.bleu import BLEU

        bleu = BLEU(tokenize="13a", smooth_method="exp", effective_order=True)
        rows = np.zeros((len(pairs), 1 + len(_STATISTICS)))
        for row, reference, answer in zip(rows, pairs.references, pairs.answers, strict=True):
            found = bleu.sentence_score(answer, [reference])
            row[:] = (found.score, found.sys_len, found.ref_len, *found.counts, *found.totals)
        return dict(zip(("value", *_STATISTICS), rows.T, strict=True))

    def corpus(self, sums: Mapping[str, Column]) -> Column:
        """Corpus BLEU of each group."""
        import numpy as np
        from sacrebleu.metrics.bleu import BLEU

        groups = np.stack([sums[name] for name in _STATISTICS], axis=1).astype(int).tolist()
        scores = [
            BLEU.compute_bleu(
                correct=group[2 : 2 + _ORDER],
                total=group[2 + _ORDER :],
                sys_len=group[0],
                ref_len=group[1],
                smooth_method="exp",
            ).score
            for group in groups
        ]
        return np.array(scores, dtype=np.float64)
