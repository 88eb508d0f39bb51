"""Multiple-choice accuracy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from vlmhb.contract.metric import Metric, Pairs

if TYPE_CHECKING:
    from vlmhb.contract.metric import Column

_LOOK_ALIKES = str.maketrans("АВСЕНКавсенк", "ABCEHKabcehk")  # Cyrillic letters that stand for those of options
_ALONE = re.compile(r"[\s(\[*\"'«]*([A-Za-z])[\s)\].:*\"'»]*")
_LEADS = re.compile(r"[\s(\[*\"'«]*([A-Z])(?:[)\].:*]|\s+-)")
_STATED = re.compile(
    r"\b(?i:answer|option|choice|ответ|вариант)\b(?i:\s+is)?\s*[:—–-]?\s*"
    r"(?:[(\[*\"'«]+([A-Za-zАВСЕНКавсенк])[)\]*\"'».]|([A-ZАВСЕНК])(?!\w))"
)


class MultipleChoice(Metric):
    """1 if the option that the answer chooses is the right one, else 0.

    An answer chooses an option by its letter alone (``B``, ``(B)``, ``B.``), by the letter at its start (``B) cat``),
    by saying so (``the answer is B``, ``Ответ: B``; the last one counts), or by the option's text where the dataset has
    it: the same text, or the text of one option and of no other somewhere in the answer. Cyrillic letters that look
    like Latin ones count as those. The reference is a letter, or the right option's text. Where there are no options
    and the reference is no letter the texts must be equal.
    """

    name = "multiple_choice"
    title = "Multiple choice"
    aliases = ("mc_accuracy", "multiple_choice_accuracy")
    higher_is_better = True
    bounds = (0.0, 1.0)
    source = (
        "vlmhb, after the matching rules of VLMEvalKit (Duan et al., 2024, arXiv:2407.11691), without a judge model"
    )

    def score(self, pairs: Pairs) -> Mapping[str, Column]:
        """``value`` only: the mean is the share of right choices."""
        import numpy as np

        rows = zip(pairs.references, pairs.answers, pairs.choices, strict=True)
        return {"value": np.array([_right(*row) for row in rows], dtype=np.float64)}


def _right(reference: str, answer: str, options: Sequence[str]) -> bool:
    if reference == answer:
        return True
    wanted = _letter_of(reference, options)
    return wanted is not None and chosen_letter(answer, options) == wanted


def chosen_letter(answer: str, options: Sequence[str] = ()) -> str | None:
    """The letter of the option that an answer chooses, or None when it chooses none, or several."""
    latin = answer.translate(_LOOK_ALIKES)
    for match in (_ALONE.fullmatch(latin), _LEADS.match(latin)):
        if match and _is_option(match[1], options):
            return match[1].upper()
    stated = ["".join(found).translate(_LOOK_ALIKES).upper() for found in _STATED.findall(answer)]
    stated = [letter for letter in stated if _is_option(letter, options)]
    return stated[-1] if stated else _by_text(answer, options)


def _letter_of(reference: str, options: Sequence[str]) -> str | None:
    match = _ALONE.fullmatch(reference.translate(_LOOK_ALIKES))
    if match and _is_option(match[1], options):
        return match[1].upper()
    return _by_text(reference, options)


def _is_option(letter: str, options: Sequence[str]) -> bool:
    return not options or ord(letter.upper()) - ord("A") < len(options)


def _by_text(answer: str, options: Sequence[str]) -> str | None:
    text = _folded(answer)
    folded = [_folded(option) for option in options]
    same = [at for at, option in enumerate(folded) if option and option == text]
    inside = [
        at for at, option in enumerate(folded) if option and re.search(rf"(?<!\w){re.escape(option)}(?!\w)", text)
    ]
    found = same or inside
    return chr(ord("A") + found[0]) if len(found) == 1 else None


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .")
