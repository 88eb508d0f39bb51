"""Comparing what two engines made of one request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from vlmhb.contract.result import GenerationResult

NEAR_TIE = 0.01
"""Log-probability gap up to which two candidates count as a near tie, unless the user says otherwise."""

Verdict = Literal["same", "near tie", "different", "different prompt", "both failed", "failed"]
"""What a comparison found.

``same``: prompt ids and output ids are equal (the texts, where engines give no ids). ``near tie``: at the first token
that differs, both candidates are within the near-tie gap on the reference engine, so rounding decides. ``different``:
they are further apart, or nobody can say. ``different prompt``: the engines did not see the same prompt ids. ``both
failed``: neither answered. ``failed``: one did not answer.
"""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One request on one engine against the reference engine.

    Attributes:
        id: the request.
        verdict: see :data:`Verdict`.
        prompt_equal: whether the prompt token ids are equal; None when one engine did not say.
        first_difference: position of the first output token that differs, from 0; one past the shorter output when
            one is the beginning of the other; None when they are equal.
        gap: at that position, how much less probable the other engine's token is on the reference engine, as a
            difference of log-probabilities; None when it is not among the reference's candidates.
        detail: one sentence for people, for example a failure's reason.
    """

    id: str
    verdict: Verdict
    prompt_equal: bool | None = None
    first_difference: int | None = None
    gap: float | None = None
    detail: str = ""


def compare_results(reference: GenerationResult, other: GenerationResult, near_tie: float = NEAR_TIE) -> Comparison:
    """Compare two results of one request.

    Args:
        reference: from the engine that counts as right; with log-probabilities where it can give them.
        other: from another engine.
        near_tie: largest gap of a near tie, in units of log-probability.
    """
    if not reference.ok or not other.ok:
        return _failed(reference, other)
    prompt_equal = None
    if reference.prompt_token_ids is not None and other.prompt_token_ids is not None:
        prompt_equal = reference.prompt_token_ids == other.prompt_token_ids
    place = first_difference(reference.token_ids, other.token_ids)
    gap = None if place is None else _gap(reference, other, place)
    verdict: Verdict = "same"
    no_ids = not reference.token_ids and not other.token_ids
    if prompt_equal is False:
        verdict = "different prompt"
    elif no_ids and reference.text != other.text:
        verdict = "different"
    elif place is not None:
        verdict = "near tie" if gap is not None and gap <= near_tie else "different"
    return Comparison(id=reference.id, verdict=verdict, prompt_equal=prompt_equal, first_difference=place, gap=gap)


def first_difference(left: Sequence[int], right: Sequence[int]) -> int | None:
    """Position of the first token that differs; the shorter length when one is a prefix of the other; None if equal."""
    for place, (one, two) in enumerate(zip(left, right, strict=False)):
        if one != two:
            return place
    return None if len(left) == len(right) else min(len(left), len(right))


def _gap(reference: GenerationResult, other: GenerationResult, place: int) -> float | None:
    """How much less probable the other's token is than the reference's, on the reference engine."""
    if reference.logprobs is None or place >= len(reference.logprobs) or place >= len(other.token_ids):
        return None
    candidates = {candidate.token_id: candidate.logprob for candidate in reference.logprobs[place]}
    own = candidates.get(reference.token_ids[place]) if place < len(reference.token_ids) else None
    theirs = candidates.get(other.token_ids[place])
    return None if own is None or theirs is None else own - theirs


def _failed(reference: GenerationResult, other: GenerationResult) -> Comparison:
    reasons = [result.failure.message for result in (reference, other) if result.failure]
    verdict: Verdict = "both failed" if len(reasons) == 2 else "failed"
    if len(reasons) == 2 and reasons[0] == reasons[1]:
        reasons = reasons[:1]
    return Comparison(id=reference.id, verdict=verdict, detail=" | ".join(reasons))
