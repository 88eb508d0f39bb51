"""From a stream of requests to encoded batches: like with like, prepared ahead in a thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from vlmhb import GenerationControl, GenerationRequest, GenerationResult
from vlmhb.errors import RequestError
from vlmhb.prompting import PreparedPrompt, PromptBuilder, fit_to_context

from vlmhb_hf.faults import request_error
from vlmhb_hf.rows import Row

_WINDOW = 4
"""How many batches' worth of requests are looked at together when batches are formed."""

_PATIENCE = 0.5
"""Seconds after which a window is closed early, so that a slow source of requests does not hold answers back."""


class Taken(NamedTuple):
    """A request and the moment the engine got it."""

    request: GenerationRequest
    arrived: float


class Batch(NamedTuple):
    """Rows that are answered together; ``encoded`` holds the processor's tensors for them."""

    rows: list[Row]
    encoded: Any


class Prepared(NamedTuple):
    """What became of some requests: batches to run, and results of those that cannot be served."""

    batches: list[Batch]
    failed: list[GenerationResult]


def form_batches(
    requests: Iterable[GenerationRequest],
    batch_size: Callable[[], int],
    estimate: Callable[[GenerationRequest], int],
    control: GenerationControl,
) -> Iterator[list[Taken]]:
    """Read requests as they are needed and group them.

    Within a window, requests with and without images are kept apart, and those of like ``max_tokens`` and like
    length go together, the longest first, so that little is spent on padding and memory is found short early.
    """
    source = iter(requests)
    while not control.stop.is_set() and (window := _window(source, _WINDOW * batch_size())):
        window.sort(key=lambda taken: _likeness(taken.request, estimate), reverse=True)
        while window and not control.stop.is_set():
            pictured = bool(window[0].request.images)
            size = batch_size()
            batch = [taken for taken in window[:size] if bool(taken.request.images) == pictured]
            window = window[len(batch) :]
            yield batch


class Preparation:
    """Makes batches ready in a thread of its own, while the caller's thread generates. A context manager."""

    def __init__(self, builder: PromptBuilder, context: int | None) -> None:
        self._builder = builder
        self._context = context
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="vlmhb-hf-prepare")

    def __enter__(self) -> Preparation:
        return self

    def __exit__(self, *error: object) -> None:
        self._thread.shutdown(cancel_futures=True)

    def begin(self, taken: Sequence[Taken]) -> Future[Prepared]:
        """Start to read images, render prompts and encode."""
        return self._thread.submit(self._prepare, taken)

    def again(self, rows: Sequence[Row], size: int) -> Prepared:
        """Encode rows once more, in groups of at most ``size``."""
        parts = [list(rows[start : start + size]) for start in range(0, len(rows), size)]
        return _joined(self._thread.submit(self._encode_rows, part).result() for part in parts)

    def _prepare(self, taken: Sequence[Taken]) -> Prepared:
        failed: list[GenerationResult] = []
        ready: list[tuple[PreparedPrompt, float]] = []
        for request, arrived in taken:
            try:
                if request.json_schema is not None:
                    raise RequestError("this backend cannot hold an answer to a JSON schema.", kind="unsupported")
                ready.append((self._builder.prepare(request), arrived))
            except Exception as error:  # noqa: BLE001 - a model's processor may raise anything; it costs this row only
                failed.append(GenerationResult.failed(request.id, request_error(error)))
        rows = [Row(prompt, 0, 0, prompt.notes, arrived) for prompt, arrived in ready]
        return _joined([Prepared([], failed), self._encode_rows(rows)])

    def _encode_rows(self, rows: list[Row]) -> Prepared:
        """Encode rows together; those that do not fit are left out, and a refused batch is tried row by row."""
        if not rows:
            return Prepared([], [])
        try:
            encoded = self._builder.encode([row.prompt for row in rows])
        except Exception as error:  # noqa: BLE001 - as above
            if len(rows) > 1:
                return _joined(self._encode_rows([row]) for row in rows)
            return Prepared([], [_failed(rows[0], error)])
        fitting, failed = self._fit(rows, encoded["attention_mask"].sum(-1).tolist())
        if failed:
            return _joined([Prepared([], failed), self._encode_rows(fitting)])
        return Prepared([Batch(rows, encoded)], [])

    def _fit(self, rows: Sequence[Row], lengths: Sequence[int]) -> tuple[list[Row], list[GenerationResult]]:
        fitting: list[Row] = []
        failed: list[GenerationResult] = []
        for row, length in zip(rows, lengths, strict=True):
            try:
                limit, notes = fit_to_context(length, row.request, self._context)
            except RequestError as error:
                failed.append(_failed(row, error))
                continue
            if not row.limit:
                row.notes.extend(notes)
            row.prompt_tokens, row.limit = length, limit
            fitting.append(row)
        return fitting, failed


def _window(source: Iterator[GenerationRequest], size: int) -> list[Taken]:
    window: list[Taken] = []
    opened = time.perf_counter()
    for request in source:
        window.append(Taken(request, time.perf_counter()))
        if len(window) >= size or window[-1].arrived - opened > _PATIENCE:
            break
    return window


def _likeness(request: GenerationRequest, estimate: Callable[[GenerationRequest], int]) -> tuple[bool, int, int]:
    return bool(request.images), request.sampling.max_tokens, estimate(request)


def _failed(row: Row, error: Exception) -> GenerationResult:
    return GenerationResult.failed(row.request.id, request_error(error), tuple(row.notes))


def _joined(parts: Iterable[Prepared]) -> Prepared:
    whole = Prepared([], [])
    for part in parts:
        whole.batches.extend(part.batches)
        whole.failed.extend(part.failed)
    return whole
