"""A model on Hugging Face transformers."""

from __future__ import annotations

import gc
import importlib.metadata
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import msgspec
import torch
from vlmhb import BackendInfo, GenerationControl, GenerationRequest, GenerationResult, ModelInterface, ModelSpec
from vlmhb.contract.hints import with_hints
from vlmhb.errors import ModelLoadError, RequestError, VlmhbError
from vlmhb.prompting import PromptBuilder, context_length, open_model_folder, sampling_defaults_of

from vlmhb_hf.batches import Batch, Plain, Preparation, Prepared, form_batches
from vlmhb_hf.faults import out_of_memory, request_error
from vlmhb_hf.generation import Generation, cache_settings
from vlmhb_hf.hints import RULES
from vlmhb_hf.info import DEFAULT_BATCH_SIZE, describe
from vlmhb_hf.loading import load_torch_model
from vlmhb_hf.memory import MemoryBudget, budget_of
from vlmhb_hf.reuse import Reuse, limit_of
from vlmhb_hf.rows import Row
from vlmhb_hf.sharing import picture_bytes
from vlmhb_hf.threads import choose_threads

_AHEAD = 2
"""Batches in preparation or ready while one is being answered."""


class HuggingFaceModel(ModelInterface):
    """A model folder loaded with transformers, answered in batches.

    Requests are read in windows of four batches, sorted so that one page's and like lengths go together, padded on the
    left, and prepared (decoding, resizing, the model's processor) in a thread while the batch before is generated.
    What prompts of a batch have in common is computed once where the model allows it (:mod:`vlmhb_hf.reuse`). A row's
    time to first token is that of its batch: all its rows are read together.
    """

    def __init__(self, backend: str = "hf") -> None:
        """Args: the name under which the backend is registered."""
        self._backend = backend
        self._facts: dict[str, Any] = {}
        self._news: list[str] = []
        self._batch_size = DEFAULT_BATCH_SIZE
        self._context: int | None = None
        self._model: Any = None
        self._builder: PromptBuilder | None = None
        self._reuse: Reuse | None = None
        self._generation: Generation | None = None
        self._budget: MemoryBudget | None = None

    def backend_info(self) -> BackendInfo:
        """See :meth:`vlmhb.ModelInterface.backend_info`."""
        return describe(self._backend)

    def load_spec(self, spec: ModelSpec) -> None:
        """Load the model; one that is loaded already is closed first.

        Raises:
            ModelLoadError: the folder or the model cannot be used, or an option has an impossible value.
        """
        self.close()
        if problem := self.backend_info().problem:
            raise ModelLoadError(problem)
        self._batch_size = _positive(spec, "batch_size") or DEFAULT_BATCH_SIZE
        threads, because = choose_threads(_positive(spec, "threads"))
        if threads is not None:
            torch.set_num_threads(threads)
        settings = cache_settings(spec.options.get("cache", "dynamic"), compiled=spec.options.get("compile", False))
        folder = open_model_folder(spec)
        self._context = context_length(folder, spec)
        builder = PromptBuilder(spec, folder)
        loaded = load_torch_model(folder, spec, takes_images=builder.takes_images)
        self._model, self._builder = loaded.model, builder
        fixed = "the KV cache is static" if settings else ""
        self._reuse = Reuse(loaded.model, spec.options.get("reuse", "auto"), fixed)
        self._generation = Generation(loaded.model, builder, self._reuse, settings)
        self._budget = budget_of(loaded.model)
        ignored = sampling_defaults_of(folder.path)
        self._news = [*builder.notes, *self._reuse.news()]
        if ignored:
            said = ", ".join(f"{name}={value}" for name, value in ignored.items())
            self._news.append(
                f"the model folder's generation_config.json would set {said}; the request decides instead."
            )
        facts = {
            **loaded.facts,
            "engine_version": importlib.metadata.version("transformers"),
            "torch_version": torch.__version__,
            "threads": torch.get_num_threads(),
            "threads_because": because,
            "batch_size": self._batch_size,
            "cache": "static" if settings else "dynamic",
            "compiled": "compile_config" in settings,
            "context_length": self._context,
            "max_images": builder.max_images,
            "stop_token_ids": list(builder.stop_ids),
            "ignored_generation_config": ignored,
            "notes": list(builder.notes),
            "time_to_first_token": "of the whole batch a request was answered in",
        }
        self._facts = with_hints(facts, RULES)

    def facts(self) -> dict[str, Any]:
        """What was decided while loading, and ``reuse`` as it is now; empty before."""
        return {**self._facts, "reuse": self._reuse.facts()} if self._reuse is not None else {}

    def generate_requests(
        self, requests: Iterable[GenerationRequest], control: GenerationControl | None = None
    ) -> Iterator[GenerationResult]:
        """Answer requests in batches; see :meth:`vlmhb.ModelInterface.generate_requests`.

        Raises:
            VlmhbError: no model is loaded.
        """
        if self._builder is None or self._reuse is None:
            raise VlmhbError("no model is loaded; call load first.")
        control = control or GenerationControl()
        waiting: deque[Future[Prepared]] = deque()
        seen = False
        with Preparation(self._builder, self._context, self._reuse) as preparation:
            groups = form_batches(
                requests, lambda: self._batch_size, self._builder.estimate_tokens, self._fits, control
            )
            for taken in groups:
                waiting.append(preparation.begin(taken))
                if taken[0].request.images and not seen:
                    seen = True
                    self._learn(waiting[-1].result())  # before the next batch is formed
                if len(waiting) > _AHEAD:
                    yield from self._answer(waiting.popleft().result(), preparation, control)
            while waiting and not control.stop.is_set():
                yield from self._answer(waiting.popleft().result(), preparation, control)

    def close(self) -> None:
        """Give the model's memory back, on the GPU too."""
        if self._model is None:
            return
        self._model = self._builder = self._reuse = self._generation = None
        self._facts, self._news = {}, []
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _fits(self, rows: int, tokens: int, pages: int) -> bool:
        shared = self._reuse is not None and self._reuse.level == "prefix"
        return self._budget is None or self._budget.fits(rows, tokens, pages if shared else rows)

    def _learn(self, prepared: Prepared) -> None:
        if self._budget is not None and self._builder is not None:
            for batch in prepared.batches:
                sizes = {id(picture): picture.size for row in batch.rows for picture in row.prompt.images}
                tokens = sum(self._builder.family.image_tokens(*size) for size in sizes.values())
                self._budget.learn(picture_bytes(batch.encoded), tokens)

    def _answer(
        self, prepared: Prepared, preparation: Preparation, control: GenerationControl
    ) -> Iterator[GenerationResult]:
        yield from prepared.failed
        self._learn(prepared)
        while prepared.batches:
            batch = prepared.batches.pop(0)
            if len(batch.rows) > self._batch_size:  # it was made before memory ran out
                parts = preparation.again(batch.rows, self._batch_size)
            else:
                parts, results = self._try(batch, preparation, control)
                for result in results:
                    yield self._with_news(result)
            del batch  # its tensors are large
            yield from self._answer(parts, preparation, control)
        if prepared.unmade:
            yield from self._answer_in_parts(prepared.unmade, preparation, control)

    def _answer_in_parts(
        self, rows: Sequence[Row], preparation: Preparation, control: GenerationControl
    ) -> Iterator[GenerationResult]:
        """Answer rows that memory did not suffice for; a part is prepared when the one before is answered."""
        self._make_smaller(rows)
        while rows:
            part, rows = rows[: self._batch_size], rows[self._batch_size :]
            yield from self._answer(preparation.again(part, len(part)), preparation, control)

    def _try(
        self, batch: Batch, preparation: Preparation, control: GenerationControl
    ) -> tuple[Prepared, list[GenerationResult]]:
        """Answer a batch, or say what to do instead: smaller or plain batches, or a failure."""
        assert self._generation is not None
        assert self._reuse is not None
        try:
            if batch.shared is not None and not self._proved(batch, preparation):
                return preparation.again(batch.rows, len(batch.rows)), []
            results = self._generation.answer(batch, control)
            self._reuse.batches[batch.level] += 1
        except Exception as error:  # noqa: BLE001 - a model's code may raise anything; rows without fault must go on
            memory, problem = out_of_memory(error), request_error(error)
        else:
            if batch.plain is not None:  # so the fault was not in the rows
                self._reuse.give_up(batch.plain.level, batch.plain.reason)
                self._news += self._reuse.news()
            return Prepared([], []), results
        # Out of the except block, so that the traceback no longer holds the batch's tensors.
        if memory:
            gc.collect()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
        return self._instead(batch, preparation, problem, memory=memory)

    def _instead(
        self, batch: Batch, preparation: Preparation, problem: RequestError, *, memory: bool
    ) -> tuple[Prepared, list[GenerationResult]]:
        """What to do about a batch that failed."""
        rows = batch.rows
        if len(rows) == 1:
            return Prepared([], []), [GenerationResult.failed(rows[0].request.id, problem, tuple(rows[0].notes))]
        ours = self._reuse is not None and (self._reuse.own_loop or batch.level != "off")
        if not memory and ours and batch.plain is None:
            return preparation.again(rows, len(rows), Plain(str(problem), batch.level)), []
        if memory:
            return Prepared([], [], rows), []
        for row in rows:
            row.notes.append(f"the engine failed on {len(rows)} requests together; answered one by one. ({problem})")
        return preparation.again(rows, 1), []

    def _make_smaller(self, rows: Sequence[Row]) -> None:
        """The batch size from now on, since memory ran out with these."""
        self._batch_size = max(1, min(self._batch_size, len(rows) // 2))
        for row in rows:
            row.notes.append(
                f"memory ran out with {len(rows)} requests together; answered in groups of {self._batch_size}."
            )

    def _proved(self, batch: Batch, preparation: Preparation) -> bool:
        """Whether sharing is known to be right for this model; the first batch that shares is what it is tried on."""
        assert self._generation is not None
        assert self._reuse is not None
        assert batch.shared is not None
        if batch.level not in self._reuse.differences:
            rows = [batch.rows[place] for place in batch.shared.sample()]
            plain = preparation.again(rows, len(rows), Plain("proof"))
            shared = preparation.again(rows, len(rows), levels=(batch.level,))
            if plain.unmade or shared.unmade:
                raise MemoryError("not enough memory to compare both ways")
            difference = self._generation.difference(plain.batches[0], shared.batches[0])
            self._reuse.judge(batch.level, difference, limit_of(self._model.dtype))
            self._news += self._reuse.news()
        return self._reuse.allows(batch.level)

    def _with_news(self, result: GenerationResult) -> GenerationResult:
        """Say once, with the first result, what concerns all of them."""
        if not self._news:
            return result
        news, self._news = self._news, []
        return msgspec.structs.replace(result, notes=(*result.notes, *news))


def _positive(spec: ModelSpec, option: str) -> int | None:
    value: int | None = spec.options.get(option)
    if value is not None and value < 1:
        raise ModelLoadError(f"{option} must be at least 1, not {value}.")
    return value
