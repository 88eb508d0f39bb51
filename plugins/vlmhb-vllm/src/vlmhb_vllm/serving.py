"""The loop around vLLM's engine: requests in whenever there is room, answers out the moment they are finished."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vlmhb import GenerationControl, GenerationRequest, GenerationResult
from vlmhb.errors import RequestError

from vlmhb_vllm.queueing import Queue, Waiting
from vlmhb_vllm.refusals import refused
from vlmhb_vllm.results import to_result
from vlmhb_vllm.watch import death_watch

if TYPE_CHECKING:
    from vllm import RequestOutput
    from vllm.v1.engine.llm_engine import LLMEngine
    from vlmhb.prompting import PreparedPrompt, PromptBuilder

LOOK_AHEAD = 64
"""Most requests that are prepared before the engine has room for them; each may hold a page of pixels."""


@dataclass
class InFlight:
    """A request that the engine has."""

    request: GenerationRequest
    notes: tuple[str, ...]
    started: bool = False
    shown: int = 0


@dataclass(frozen=True)
class Ready:
    """A request as the engine takes it."""

    prompt: Any
    params: Any
    notes: tuple[str, ...]


class Serving:
    """One pass over requests.

    Args:
        engine: vLLM's engine.
        builder: prepares requests, in a thread, and turns ids into text.
        admit: prepared prompt, whether its text is streamed -> what the engine takes; called in the caller's thread.
            Raises :class:`RequestError` when the engine cannot take it.
        control: when to stop, and where text goes as it appears.
    """

    _ids = itertools.count()

    def __init__(
        self,
        engine: LLMEngine,
        builder: PromptBuilder,
        admit: Callable[[PreparedPrompt, bool], Ready],
        control: GenerationControl,
    ) -> None:
        self._engine = engine
        self._builder = builder
        self._admit = admit
        self._control = control
        self._running: dict[str, InFlight] = {}
        self._slots = engine.vllm_config.scheduler_config.max_num_seqs
        self._look_ahead = min(self._slots, LOOK_AHEAD)

    def answer(self, requests: Iterable[GenerationRequest]) -> Iterator[GenerationResult]:
        """Yield each request's result when it is finished; see ``ModelInterface.generate_requests``."""
        queue = Queue(requests, self._builder.prepare, self._look_ahead)
        try:
            with death_watch(self._engine.engine_core):
                yield from self._serve(queue)
        finally:
            queue.close()
            # The engine may be what failed; the exception on its way out says so, and must not be replaced.
            with contextlib.suppress(Exception):
                self._engine.abort_request(list(self._running))

    def _serve(self, queue: Queue) -> Iterator[GenerationResult]:
        while True:
            if self._control.stop.is_set():
                queue.close()
                self._drop_unstarted()
            else:
                queue.read(busy=bool(self._running), may_read=lambda: self._control.may_read(busy=True))
                yield from self._fill(queue)
            if self._running:
                yield from self._step()
            elif queue.ended and not len(queue):
                return

    def _fill(self, queue: Queue) -> Iterator[GenerationResult]:
        """Give the engine prepared requests: as many as it computes together, and some that wait for a place."""
        while len(self._running) < self._slots + self._look_ahead:
            entry = queue.take(wait=not self._running)
            if entry is None:
                return
            error = self._start(entry)
            if error is not None:
                yield GenerationResult.failed(entry.request.id, error)

    def _start(self, entry: Waiting) -> RequestError | None:
        """Hand one request to the engine; the reason when it cannot be served."""
        from vllm.v1.engine.exceptions import EngineDeadError

        name = f"vlmhb-{next(self._ids)}"
        ready: Ready | None = None
        try:
            ready = self._admit(entry.prepared.result(), self._control.on_text is not None)
            self._engine.add_request(name, ready.prompt, ready.params)
        except RequestError as error:
            return error
        except EngineDeadError:
            raise
        except Exception as error:  # noqa: BLE001 - a model's processor may raise anything; it costs this request only
            self._engine.abort_request([name])  # it may have got half way in
            if ready is not None:
                forget_pictures(self._engine, ready.prompt)
            return refused(error)
        self._running[name] = InFlight(entry.request, ready.notes)
        return None

    def _step(self) -> Iterator[GenerationResult]:
        for output in self._engine.step():
            entry = self._running.get(output.request_id)
            if entry is None:
                continue
            entry.started = True
            if output.finished:
                del self._running[output.request_id]
                yield self._finish(entry, output)
            elif self._control.on_text is not None:
                self._show(entry, finished_part(self._text(entry, output), entry.request.sampling.stop))
        self._control.step()

    def _finish(self, entry: InFlight, output: RequestOutput) -> GenerationResult:
        text = self._text(entry, output)
        if self._control.on_text is not None:
            self._show(entry, text)
        return to_result(entry.request, output, text=text, notes=entry.notes)

    def _text(self, entry: InFlight, output: RequestOutput) -> str:
        return self._builder.answer_text(output.outputs[0].token_ids, entry.request.sampling.stop)

    def _show(self, entry: InFlight, text: str) -> None:
        piece = text[entry.shown :]
        if piece and self._control.on_text is not None:
            entry.shown = len(text)
            self._control.on_text(entry.request.id, piece)

    def _drop_unstarted(self) -> None:
        """Take back what the engine has not produced a token for."""
        names = [name for name, entry in self._running.items() if not entry.started]
        if names:
            self._engine.abort_request(names)
            for name in names:
                del self._running[name]


def forget_pictures(engine: LLMEngine, prompt: Any) -> None:
    """Have the pictures of a request that the engine did not get sent again with the next request about them.

    vLLM's renderer takes what it has rendered once for known to the engine, and sends only its hash from then on.
    """
    cache = engine.renderer.mm_processor_cache
    if cache is not None:
        for hashes in prompt.get("mm_hashes", {}).values():
            for mm_hash in hashes:
                cache.invalidate(mm_hash)


def finished_part(text: str, stop: Sequence[str]) -> str:
    """The part of an unfinished answer's text that will not change: no half character, no beginning of a stop text."""
    text = text.rstrip("\ufffd")
    held = max((size for word in stop for size in range(1, len(word)) if text.endswith(word[:size])), default=0)
    return text[: len(text) - held]
