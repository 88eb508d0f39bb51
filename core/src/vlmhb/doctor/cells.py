"""What became of one twin on one implementation of one engine, in a verdict and a few words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from vlmhb.compare.engines import EngineAnswers, compare_engines
from vlmhb.compare.tokens import Comparison
from vlmhb.contract.result import Failure, GenerationResult

Outcome = Literal["same tokens", "near tie", "differs", "refused", "fails", "unknown"]
"""``same tokens``: prompt ids and output ids of every request are the reference's. ``near tie``: where the outputs
part, both tokens are about as probable on the reference. ``differs``: they are not, or the prompts have other ids.
``refused``: the model does not load, or the engine says of a request that it does not take such. ``fails``: the engine
loads the model and breaks at a request. ``unknown``: it could not be asked."""

ORDER: tuple[Outcome, ...] = ("same tokens", "near tie", "differs", "refused", "fails", "unknown")
"""From good to bad; a cell is as bad as the worst of its requests."""
_REFUSALS = ("unsupported", "invalid_request", "image", "too_long")
_LONGEST = 300


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One twin on one implementation.

    Attributes:
        backend, implementation: whose.
        outcome: see :data:`Outcome`.
        reason: the first request that shows it and where, or the engine's reason.
        requests: how many requests came to this outcome, of how many; zeros when the model did not load.
        comparisons: each request against the reference; empty for the reference itself.
        unlike: the request that shows a difference with the fewest tokens of prompt, or empty.
    """

    backend: str
    implementation: str
    outcome: Outcome
    reason: str = ""
    requests: tuple[int, int] = (0, 0)
    comparisons: tuple[Comparison, ...] = ()
    unlike: str = ""

    @property
    def name(self) -> str:
        """How tables call the implementation."""
        return f"{self.backend} {self.implementation}".strip()

    @property
    def agrees(self) -> bool:
        """Whether the tokens are those of the reference, but for rounding."""
        return self.outcome in ("same tokens", "near tie")

    def words(self) -> str:
        """The outcome in one line."""
        done, whole = self.requests
        part = f" ({done} of {whole} requests)" if whole and done < whole else ""
        return f"{self.outcome}: {self.reason}{part}" if self.reason else f"{self.outcome}{part}"


def cell_of(backend: str, implementation: str, answers: EngineAnswers, reference: EngineAnswers | None = None) -> Cell:
    """The cell that some answers make.

    Args:
        backend, implementation: whose answers they are.
        answers: the answers.
        reference: what they are held against; None when these are the reference's own.
    """
    if answers.problem is not None:
        outcome: Outcome = "fails" if answers.loaded else "refused"
        return Cell(backend=backend, implementation=implementation, outcome=outcome, reason=_shortened(answers.problem))
    if reference is None:
        judged = [(id, *_of_result(result)) for id, result in answers.results.items()]
        comparisons: tuple[Comparison, ...] = ()
    else:
        (compared,) = compare_engines([reference, answers])
        comparisons = compared.comparisons
        judged = [(c.id, *_of_comparison(c, reference.results, answers.results)) for c in comparisons]
    return _worst(backend, implementation, judged, comparisons, (reference or answers).results)


def _worst(
    backend: str,
    implementation: str,
    judged: Sequence[tuple[str, Outcome, str]],
    comparisons: tuple[Comparison, ...],
    results: dict[str, GenerationResult],
) -> Cell:
    if not judged:
        return Cell(backend=backend, implementation=implementation, outcome="fails", reason="no request was answered.")
    outcome = max((entry[1] for entry in judged), key=ORDER.index)
    those = [(id, reason) for id, found, reason in judged if found == outcome]
    shortest, reason = min(those, key=lambda entry: results[entry[0]].prompt_tokens or 0)
    return Cell(
        backend=backend,
        implementation=implementation,
        outcome=outcome,
        reason=_shortened(reason),
        requests=(len(those), len(judged)),
        comparisons=comparisons,
        unlike="" if outcome == "same tokens" else shortest,
    )


def _of_result(result: GenerationResult) -> tuple[Outcome, str]:
    return ("same tokens", "") if result.failure is None else _of_failure(result.failure)


def _of_failure(failure: Failure) -> tuple[Outcome, str]:
    return ("refused" if failure.kind in _REFUSALS else "fails"), failure.message


def _of_comparison(
    compared: Comparison, reference: dict[str, GenerationResult], others: dict[str, GenerationResult]
) -> tuple[Outcome, str]:
    """One request: two engines that both refuse it agree; one that answers what the reference does not is unlike it."""
    if compared.verdict in ("same", "both failed"):
        return "same tokens", ""
    if compared.verdict == "failed":
        other = others.get(compared.id)
        if other is not None and other.failure is not None:
            return _of_failure(other.failure)
        if other is None:
            return "fails", "it gave no answer."
        return "differs", "it answers what the reference does not."
    if compared.verdict == "different prompt":
        return "differs", "the prompt has other token ids"
    place = compared.first_difference
    gap = "" if compared.gap is None else f", gap {compared.gap:.4f}"
    where = f"at token {place}{gap}"
    return ("near tie", where) if compared.verdict == "near tie" else ("differs", where)


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."
