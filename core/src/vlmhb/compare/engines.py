"""Asking several engines the same requests, one engine after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from vlmhb.compare.tokens import NEAR_TIE, Comparison, compare_results
from vlmhb.contract.model import GenerationControl, ModelInterface
from vlmhb.contract.request import GenerationRequest
from vlmhb.contract.result import GenerationResult
from vlmhb.errors import RequestError, VlmhbError

CANDIDATES = 5
"""How many candidates the engines give for each token, so that near ties can be told from faults."""


class EngineAnswers(msgspec.Struct, frozen=True):
    """What one engine answered, by request id.

    Attributes:
        name: the engine.
        results: what it answered.
        problem: why it could not be asked at all.
        loaded: whether it loaded the model.
    """

    name: str
    results: dict[str, GenerationResult]
    problem: str | None = None
    loaded: bool = True


class EngineComparison(msgspec.Struct, frozen=True):
    """One engine against the reference, request by request."""

    name: str
    reference: str
    comparisons: tuple[Comparison, ...]
    problem: str | None = None

    def count(self, verdict: str) -> int:
        """How many requests came to a verdict."""
        return sum(comparison.verdict == verdict for comparison in self.comparisons)

    @property
    def agrees(self) -> bool:
        """Whether every request is the same, a near tie, or failed on both."""
        fine = sum(map(self.count, ("same", "near tie", "both failed")))
        return self.problem is None and fine == len(self.comparisons)


def ask_engine(
    name: str,
    open_model: Callable[[], ModelInterface],
    requests: Sequence[GenerationRequest],
    answered: Callable[[GenerationResult], None],
) -> EngineAnswers:
    """Load a model on one engine, ask it everything, and close it.

    Args:
        name: how the tables call the engine.
        open_model: loads the model.
        requests: what to ask; prompt ids and candidates are asked for besides.
        answered: told about each result.
    """
    try:
        opened = open_model()
    except VlmhbError as error:
        return EngineAnswers(name, {}, str(error), loaded=False)
    with opened as model:
        return ask_model(name, model, requests, answered)


def ask_model(
    name: str,
    model: ModelInterface,
    requests: Sequence[GenerationRequest],
    answered: Callable[[GenerationResult], None],
) -> EngineAnswers:
    """The same with a model that is loaded, and stays so."""
    results: dict[str, GenerationResult] = {}
    try:
        logprobs = CANDIDATES if model.backend_info().capabilities.logprobs else 0
        asked = [msgspec.structs.replace(request, return_prompt_ids=True, logprobs=logprobs) for request in requests]
        for result in model.generate_requests(asked, GenerationControl()):
            results[result.id] = result
            answered(result)
    except VlmhbError as error:
        return EngineAnswers(name, {}, str(error))
    return EngineAnswers(name, results)


def compare_engines(answers: Sequence[EngineAnswers], near_tie: float = NEAR_TIE) -> list[EngineComparison]:
    """Compare every engine with the first one."""
    reference, *others = answers
    found = []
    for other in others:
        problem = reference.problem or other.problem
        results = {} if problem else reference.results
        comparisons = tuple(
            compare_results(result, other.results.get(id) or _no_result(id), near_tie) for id, result in results.items()
        )
        found.append(EngineComparison(other.name, reference.name, comparisons, problem))
    return found


def _no_result(id: str) -> GenerationResult:
    return GenerationResult.failed(id, RequestError("the engine gave no result", kind="engine"))
