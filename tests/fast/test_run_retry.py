"""One bad request never takes others down: out of memory and engines that raise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pytest
from vlmhb import GenerationControl, GenerationRequest, GenerationResult
from vlmhb.errors import RequestError
from vlmhb.run.retry import ATTEMPTS_ALONE, EngineGivenUpError, Retrier


class Engine:
    """An engine that takes a few requests at a time and misbehaves as told; remembers what it was given."""

    def __init__(self, behave: Callable[[list[GenerationRequest]], Iterator[GenerationResult]], size: int = 4) -> None:
        self.behave = behave
        self.size = size
        self.groups: list[list[str]] = []

    def __call__(self, requests: Iterable[GenerationRequest]) -> Iterator[GenerationResult]:
        group: list[GenerationRequest] = []
        for request in requests:
            group.append(request)
            if len(group) == self.size:
                yield from self._give(group)
                group = []
        if group:
            yield from self._give(group)

    def _give(self, group: list[GenerationRequest]) -> Iterator[GenerationResult]:
        self.groups.append([request.id for request in group])
        yield from self.behave(list(group))


def answer(request: GenerationRequest) -> GenerationResult:
    return GenerationResult(id=request.id, text=request.id.upper(), finish_reason="stop")


def out_of_memory(request: GenerationRequest) -> GenerationResult:
    return GenerationResult.failed(request.id, RequestError("out of memory", kind="out_of_memory"))


def run(engine: Engine, ids: Iterable[str], control: GenerationControl | None = None) -> dict[str, GenerationResult]:
    control = control or GenerationControl()
    results = list(Retrier(engine, control)(GenerationRequest.ask(name, "?") for name in ids))
    assert len({result.id for result in results}) == len(results), "one result a request"
    return {result.id: result for result in results}


@pytest.mark.parametrize("bad", [{"c"}, {"a"}, {"j"}, {"a", "f", "j"}])
@pytest.mark.parametrize("whole_batch", [True, False])
def test_out_of_memory_fails_only_the_request_that_needs_the_memory(bad: set[str], whole_batch: bool) -> None:
    def behave(group: list[GenerationRequest]) -> Iterator[GenerationResult]:
        trouble = whole_batch and any(request.id in bad for request in group)
        for request in group:
            yield out_of_memory(request) if trouble or request.id in bad else answer(request)

    engine = Engine(behave)
    results = run(engine, "abcdefghij")
    assert {name for name, result in results.items() if not result.ok} == bad
    assert len(results) == 10
    for name in bad:
        failure = results[name].failure
        assert failure is not None
        assert failure.kind == "out_of_memory"
        assert engine.groups.count([name]) == ATTEMPTS_ALONE
        assert f"tried alone {ATTEMPTS_ALONE} times" in results[name].notes[-1]


def test_an_answer_found_on_the_second_try_says_so() -> None:
    seen: set[str] = set()

    def behave(group: list[GenerationRequest]) -> Iterator[GenerationResult]:
        for request in group:
            first = request.id not in seen
            seen.add(request.id)
            yield out_of_memory(request) if request.id == "b" and first else answer(request)

    results = run(Engine(behave), "abc")
    assert results["b"].ok
    assert results["b"].notes == ("asked again after: out of memory",)
    assert results["a"].notes == ()


@pytest.mark.parametrize("poison", ["a", "d", "z"])
def test_an_engine_that_raises_costs_only_the_request_that_makes_it_raise(poison: str) -> None:
    def behave(group: list[GenerationRequest]) -> Iterator[GenerationResult]:
        for request in group:
            if request.id == poison:
                raise ValueError("CUBLAS_STATUS_EXECUTION_FAILED")
            yield answer(request)

    ids = "abcdefghijklmnopqrstuvwxyz"
    results = run(Engine(behave), ids)
    assert set(results) == set(ids)
    assert {name for name, result in results.items() if not result.ok} == {poison}
    failure = results[poison].failure
    assert failure is not None
    assert (failure.kind, "CUBLAS_STATUS_EXECUTION_FAILED" in failure.message) == ("engine", True)


def test_an_engine_that_forgets_a_request_is_asked_again() -> None:
    forgotten: list[str] = []

    def behave(group: list[GenerationRequest]) -> Iterator[GenerationResult]:
        for request in group:
            if request.id == "b" and not forgotten:
                forgotten.append("b")
            else:
                yield answer(request)

    assert all(result.ok for result in run(Engine(behave), "abc").values())
    assert forgotten == ["b"]


def test_an_engine_that_fails_on_everything_is_given_up() -> None:
    def behave(group: list[GenerationRequest]) -> Iterator[GenerationResult]:
        raise RuntimeError("CUDA error: device-side assert triggered")

    engine = Engine(behave)
    with pytest.raises(EngineGivenUpError, match="device-side assert"):
        run(engine, (str(number) for number in range(10_000)))
    assert len(engine.groups) < 50


def test_nothing_is_taken_after_stop() -> None:
    control = GenerationControl()

    def behave(group: list[GenerationRequest]) -> Iterator[GenerationResult]:
        control.stop.set()
        yield from map(answer, group)

    engine = Engine(behave)
    results = run(engine, "abcdefghij", control)
    assert engine.groups == [["a", "b", "c", "d"]]
    assert sorted(results) == ["a", "b", "c", "d"]
