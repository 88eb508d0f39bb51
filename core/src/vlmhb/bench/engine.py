"""One engine while it is measured: its worker, its memory, its passes."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import msgspec

from vlmhb.bench.arrivals import Arrivals, Feed
from vlmhb.bench.memory import MemoryWatch, PeakMemory
from vlmhb.bench.result import EngineRecord, Pass, Timing
from vlmhb.contract.backend import BackendInfo
from vlmhb.contract.model import GenerationControl, ModelInterface, ModelSpec
from vlmhb.contract.request import GenerationRequest
from vlmhb.contract.result import GenerationResult
from vlmhb.errors import VlmhbError
from vlmhb.worker.launch import Launch, WorkerOptions
from vlmhb.worker.model import WorkerModel

Answered = Callable[[GenerationResult], None]


class Candidate(NamedTuple):
    """An engine to be measured.

    Attributes:
        name: as the user wrote it.
        info: what the backend says about itself.
        spec: what it is to load.
        launch: where its worker is started.
        log: the file for all that the engine prints.
        say: told what happens to the worker, in sentences.
    """

    name: str
    info: BackendInfo
    spec: ModelSpec
    launch: Callable[[], Launch]
    log: Path
    say: Callable[[str], None]


class Subject:
    """A candidate with its worker, loaded or not, and all that was measured so far."""

    def __init__(self, candidate: Candidate) -> None:
        self.candidate = candidate
        self.problem: str | None = None
        self.facts: dict[str, object] = {}
        self._model: WorkerModel | None = None
        self._stack = ExitStack()
        self._watch: MemoryWatch | None = None
        self._peaks: list[PeakMemory] = []
        self._load_seconds: float | None = None
        self._warmup_seconds: float | None = None
        self._passes: list[Pass] = []

    @property
    def loaded(self) -> bool:
        """Whether it can be asked."""
        return self._model is not None

    @property
    def pid(self) -> int | None:
        """The worker's process."""
        return self._model.pid if self._model is not None else None

    def load(self) -> None:
        """Start the worker and load the model; a refusal is noted as :attr:`problem`. The first time is kept."""
        candidate = self.candidate
        options = WorkerOptions(log_path=str(candidate.log), on_event=candidate.say)
        try:
            launch = candidate.launch()
            model = self._stack.enter_context(WorkerModel(candidate.info.name, launch, options))
            self._watch = self._stack.enter_context(MemoryWatch(lambda: model.pid))
            started = time.perf_counter()
            model.load_spec(candidate.spec)
            seconds = time.perf_counter() - started
        except VlmhbError as error:
            self._give_up(error)
            return
        self._model = model
        self.facts = model.facts()
        self._load_seconds = self._load_seconds or seconds

    def warm_up(self, requests: Sequence[GenerationRequest], answered: Answered) -> None:
        """Answer requests that do not count; the first time's seconds are kept."""
        found = self._pass(requests, Arrivals(), 0, answered)
        if found is not None:
            self._warmup_seconds = self._warmup_seconds or found.seconds

    def measure(
        self, requests: Sequence[GenerationRequest], arrivals: Arrivals, repeat: int, answered: Answered
    ) -> None:
        """Answer requests and keep their times; an engine that gives up is noted as :attr:`problem`."""
        found = self._pass(requests, arrivals, repeat, answered)
        if found is not None:
            self._passes.append(found)

    def peak(self) -> int:
        """Bytes of the machine's memory that it held at most so far."""
        peaks = [*self._peaks, *([self._watch.peak()] if self._watch is not None else [])]
        return max((peak.host or 0 for peak in peaks), default=0)

    def close(self) -> None:
        """End the worker; it may be loaded again."""
        if self._watch is not None:
            self._peaks.append(self._watch.peak())
        self._model = self._watch = None
        self._stack.close()

    def record(self) -> EngineRecord:
        """All of it, for ``bench.json``."""
        return EngineRecord(
            name=self.candidate.name,
            engine=self.candidate.info.engine,
            engine_version=self.candidate.info.engine_version,
            load_seconds=self._load_seconds,
            warmup_seconds=self._warmup_seconds,
            memory=max(self._peaks, key=lambda peak: peak.host or 0, default=None),
            facts=self.facts,
            passes=tuple(self._passes),
            problem=self.problem,
        )

    def _pass(
        self, requests: Sequence[GenerationRequest], arrivals: Arrivals, repeat: int, answered: Answered
    ) -> Pass | None:
        if self._model is None:
            return None
        try:
            return run_pass(self._model, requests, arrivals, repeat, answered)
        except VlmhbError as error:
            self._give_up(error)
            return None

    def _give_up(self, error: VlmhbError) -> None:
        self.problem = str(error)
        self.close()


def run_pass(
    model: ModelInterface,
    requests: Sequence[GenerationRequest],
    arrivals: Arrivals,
    repeat: int = 1,
    answered: Answered = lambda _: None,
) -> Pass:
    """Ask a model all requests as they come, and note the times.

    Raises:
        WorkerError: the engine gave up.
    """
    feed = Feed(requests, arrivals)
    control = GenerationControl()
    control.ready = feed.ready if feed.paced else None
    timings = []
    for result in model.generate_requests(feed, control):
        ended = feed.now()
        feed.answered()
        timings.append(_timing(result, feed.due[result.id], ended))
        answered(result)
    seconds = max((timing.ended for timing in timings), default=feed.now())
    return Pass(arrivals=arrivals, repeat=repeat, seconds=seconds, requests=tuple(timings))


def _timing(result: GenerationResult, due: float, ended: float) -> Timing:
    ids = msgspec.json.encode(result.token_ids)
    return Timing(
        id=result.id,
        due=due,
        ended=ended,
        error=None if result.ok else (result.failure.message if result.failure else result.finish_reason),
        output=hashlib.sha256(ids).hexdigest()[:16] if result.ok else "",
        output_tokens=len(result.token_ids) if result.ok else None,
        prompt_tokens=result.prompt_tokens,
        cached_tokens=result.cached_tokens,
        queue_time=result.queue_time,
        time_to_first_token=result.time_to_first_token,
        time_per_output_token=result.time_per_output_token,
        total_time=result.total_time,
    )
