"""Refusal rate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from vlmhb.contract.metric import Metric, Pairs

if TYPE_CHECKING:
    from vlmhb.contract.metric import Column

_LOOKED_AT = 200
_DOING = "(?:help|assist|answer|read|see|view|process|provide|determine|identify|extract|recogni[sz]e|comply)"
_PHRASES = (
    r"(?:i(?:'m| am) )?(?:so |very |really )?sorry\b",
    r"i apologi[sz]e",
    r"unfortunately,? i\b",
    r"i(?:'m| am) (?:unable|not able)\b",
    r"i (?:can't|cannot|can not|could not|couldn't|won't|will not|must decline)\b",
    r"i (?:do not|don't) have (?:access|the ability)\b",
    r"as an? (?:ai|language model)\b",
    rf"(?:unable|not able|not possible|impossible) to {_DOING}\b",
    r"(?:я )?(?:не могу|не смогу|не в состоянии|не имею возможности|не удалось|не уда[её]тся)\b",
    r"(?:извините|простите|прошу прощения|к сожалению)\b",
    r"как (?:ии|искусственный интеллект|языковая модель)\b",
    r"невозможно (?:ответить|прочитать|распознать|определить|извлечь)\b",
)
_REFUSAL = re.compile(rf"(?:^|[.!?,:]\s+)(?:{'|'.join(_PHRASES)})")


class Refusal(Metric):
    """1 if the answer refuses or apologises instead of answering, else 0; the mean is the refusal rate.

    A refusal has one of the phrases of this module, English or Russian, at the start of a sentence or clause within the
    first 200 characters. Where the reference has one too (a letter is read out, say) the answer is none.
    """

    name = "refusal"
    title = "Refusal"
    aliases = ("refusal_rate",)
    failed_value = 1.0
    bounds = (0.0, 1.0)
    source = "matching of phrases as in Zou et al. (2023), arXiv:2307.15043, with a list for English and Russian"

    def score(self, pairs: Pairs) -> Mapping[str, Column]:
        """``value`` only."""
        import numpy as np

        value = np.zeros(len(pairs))
        value[pairs.differ] = [
            is_refusal(answer) and not is_refusal(right) for right, answer in zip(*pairs.different, strict=True)
        ]
        return {"value": value}


def is_refusal(text: str) -> bool:
    """Whether a text begins as a refusal does."""
    start = " ".join(text[:_LOOKED_AT].casefold().replace("’", "'").split())
    return _REFUSAL.search(start) is not None
