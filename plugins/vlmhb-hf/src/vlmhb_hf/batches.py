"""From a stream of requests to encoded batches: one page's together, prepared ahead in a thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from vlmhb import GenerationControl, GenerationRequest, GenerationResult
from vlmhb.errors import RequestError
from vlmhb.prompting import PreparedPrompt, PromptBuilder, fit_to_context, prompt_ids

from vlmhb_hf.faults import out_of_memory, request_error
from vlmhb_hf.reuse import Level, Reuse
from vlmhb_hf.rows import Row
from vlmhb_hf.sharing import Shared, encode_pages, encode_shared, whole_rows

_WINDOW = 4
"""How many batches' worth of requests are looked at together when batches are formed."""

_LEVELS: tuple[Level, ...] = ("prefix", "features")

_PATIENCE = 0.5
"""Seconds after which a window is closed early, so that a slow source of requests does not hold answers back."""


class Taken(NamedTuple):
    """A request, the moment the engine got it, and about how many tokens its prompt and answer have."""

    request: GenerationRequest
    arrived: float
    tokens: int


class Plain(NamedTuple):
    """A batch is to share nothing and to run in transformers' own loop.

    Attributes:
        reason: why.
        level: how much its rows shared before.
    """

    reason: str
    level: Level = "off"


class Batch(NamedTuple):
    """Rows that are answered together.

    Attributes:
        rows: the rows.
        encoded: the processor's tensors: tokens of heads (``level`` prefix) or of whole rows; pictures of heads, or of
            rows where nothing is shared.
        level: how much the rows share.
        shared: how the rows follow from the heads; None where nothing is shared.
        plain: set where the batch must be plain.
    """

    rows: list[Row]
    encoded: Any
    level: Level = "off"
    shared: Shared | None = None
    plain: Plain | None = None

    def images_of_heads(self) -> list[int]:
        """How many images each head has."""
        assert self.shared is not None
        count = {head: len(row.prompt.images) for head, row in zip(self.shared.head, self.rows, strict=True)}
        return [count[head] for head in sorted(count)]

    def prompt_ids(self, place: int) -> list[int]:
        """All prompt ids of a row, without padding."""
        if self.shared is None or self.level != "prefix":
            return prompt_ids(self.encoded, place)
        return [*prompt_ids(self.encoded, self.shared.head[place]), *self.shared.tails[place]]


class Prepared(NamedTuple):
    """What became of some requests.

    Attributes:
        batches: to run.
        failed: results of those that cannot be served.
        unmade: rows that memory did not suffice to encode together.
    """

    batches: list[Batch]
    failed: list[GenerationResult]
    unmade: Sequence[Row] = ()


def form_batches(
    requests: Iterable[GenerationRequest],
    batch_size: Callable[[], int],
    estimate: Callable[[GenerationRequest], int],
    fits: Callable[[int, int, int], bool],
    control: GenerationControl,
) -> Iterator[list[Taken]]:
    """Read requests as they are needed and group them.

    Within a window, requests with and without images are kept apart, those about the same images together, and pages
    of like ``max_tokens`` and like length side by side, the longest first, so that little is spent on padding and
    memory is found short early. A page that the window's end cuts through waits for the next window.

    Args:
        requests: what is asked.
        batch_size: most rows of a batch now.
        estimate: about how many tokens a request's prompt has.
        fits: whether memory suffices for so many rows of so many tokens about so many pages.
        control: whose ``stop`` ends it.
    """
    source = (
        Taken(request, time.perf_counter(), estimate(request) + request.sampling.max_tokens) for request in requests
    )
    rest: list[Taken] = []
    while not control.stop.is_set():
        window, more = _window(source, rest, _WINDOW * batch_size())
        if not window:
            return
        pages = _pages(window)
        rest = pages.pop() if more and 1 < len(pages[-1]) < len(window) else []
        pages.sort(key=_likeness, reverse=True)
        for page in pages:
            page.sort(key=lambda taken: taken.request.sampling.max_tokens, reverse=True)
        while pages and not control.stop.is_set():
            yield _first_batch(pages, batch_size(), fits)


class Preparation:
    """Makes batches ready in a thread of its own, while the caller's thread generates. A context manager."""

    def __init__(self, builder: PromptBuilder, context: int | None, reuse: Reuse) -> None:
        self._builder = builder
        self._context = context
        self._reuse = reuse
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="vlmhb-hf-prepare")

    def __enter__(self) -> Preparation:
        return self

    def __exit__(self, *error: object) -> None:
        self._thread.shutdown(cancel_futures=True)

    def begin(self, taken: Sequence[Taken]) -> Future[Prepared]:
        """Start to read images, render prompts and encode."""
        return self._thread.submit(self._prepare, taken)

    def again(
        self, rows: Sequence[Row], size: int, plain: Plain | None = None, levels: Sequence[Level] = _LEVELS
    ) -> Prepared:
        """Encode rows once more, in groups of at most ``size``.

        Args:
            rows: the rows.
            size: most rows of a batch.
            plain: see :class:`Batch`.
            levels: how much they may share.
        """
        parts = [list(rows[start : start + size]) for start in range(0, len(rows), size)]
        return _joined(self._thread.submit(self._encode_rows, part, plain, levels).result() for part in parts)

    def _prepare(self, taken: Sequence[Taken]) -> Prepared:
        failed: list[GenerationResult] = []
        ready: list[tuple[PreparedPrompt, float]] = []
        for request, arrived, _ in taken:
            try:
                if request.json_schema is not None:
                    raise RequestError("this backend cannot hold an answer to a JSON schema.", kind="unsupported")
                ready.append((self._builder.prepare(request), arrived))
            except Exception as error:  # noqa: BLE001 - a model's processor may raise anything; it costs this row only
                failed.append(GenerationResult.failed(request.id, request_error(error)))
        rows = [Row(prompt, 0, 0, prompt.notes, arrived) for prompt, arrived in ready]
        lots: dict[int, list[Row]] = {}
        for row in rows:
            lots.setdefault(len(row.prompt.token_ids) if self._builder.family.same_length else 0, []).append(row)
        return _joined([Prepared([], failed), *(self._encode_rows(lot) for lot in lots.values())])

    def _encode_rows(self, rows: list[Row], plain: Plain | None = None, levels: Sequence[Level] = _LEVELS) -> Prepared:
        """Encode rows together; those that do not fit are left out, and a refused batch is tried row by row.

        A batch that memory is too short for is handed back as it is: its parts, made now, would take as much.
        """
        if not rows:
            return Prepared([], [])
        try:
            batch, lengths = self._encode(rows, plain, levels)
        except Exception as error:  # noqa: BLE001 - as above
            if len(rows) > 1 and out_of_memory(error):
                return Prepared([], [], rows)
            if len(rows) > 1:
                return _joined(self._encode_rows([row]) for row in rows)
            return Prepared([], [_failed(rows[0], error)])
        fitting, failed = self._fit(rows, lengths)
        if failed:
            return _joined([Prepared([], failed), self._encode_rows(fitting, plain, levels)])
        return Prepared([batch], [])

    def _encode(self, rows: list[Row], plain: Plain | None, levels: Sequence[Level]) -> tuple[Batch, list[int]]:
        """A batch, and the length of each row's prompt."""
        prompts = [row.prompt for row in rows]
        wanted = [level for level in levels if self._allows(level, prompts)] if plain is None else []
        if wanted and (both := encode_shared(self._builder, prompts)) is not None:
            encoded, shared = both
            heads = encoded["attention_mask"].sum(-1).tolist()
            lengths = [heads[head] + len(tail) for head, tail in zip(shared.head, shared.tails, strict=True)]
            longest = max(row.request.sampling.max_tokens for row in rows)
            slots = max(heads) + max(map(len, shared.tails)) + longest
            if "prefix" in wanted and self._reuse.fits(slots):
                return Batch(rows, encoded, "prefix", shared), lengths
            if "features" in wanted and not (self._builder.family.same_length and len(set(lengths)) > 1):
                return Batch(rows, whole_rows(self._builder, encoded, shared), "features", shared), lengths
        encoded, shared = self._encode_whole(prompts, pages="features" in wanted)
        level: Level = "off" if shared is None else "features"
        return Batch(rows, encoded, level, shared, plain), encoded["attention_mask"].sum(-1).tolist()

    def _encode_whole(self, prompts: Sequence[PreparedPrompt], *, pages: bool) -> tuple[Any, Shared | None]:
        return encode_pages(self._builder, prompts) if pages else (self._builder.encode(prompts), None)

    def _allows(self, level: Level, prompts: Sequence[PreparedPrompt]) -> bool:
        return self._reuse.allows(level) and (level == "prefix" or bool(prompts[0].images))

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


def _window(source: Iterator[Taken], rest: list[Taken], size: int) -> tuple[list[Taken], bool]:
    """The next requests, and whether more are to be had at once."""
    window = list(rest)
    opened = time.perf_counter()
    for taken in source:
        window.append(taken)
        if taken.arrived - opened > _PATIENCE:
            return window, False
        if len(window) >= size:
            return window, True
    return window, False


def _pages(window: Sequence[Taken]) -> list[list[Taken]]:
    """Requests about the same images together; the last request's page last."""
    pages: dict[Any, list[Taken]] = {}
    for number, taken in enumerate(window):
        images = tuple((image.path, image.data) for image in taken.request.images)
        pages.setdefault(images or number, []).append(taken)
    last = next(key for key, page in pages.items() if page[-1] is window[-1])
    pages[last] = pages.pop(last)
    return list(pages.values())


def _likeness(page: Sequence[Taken]) -> tuple[bool, int, int]:
    longest = max(taken.request.sampling.max_tokens for taken in page)
    return bool(page[0].request.images), longest, max(taken.tokens for taken in page)


def _first_batch(pages: list[list[Taken]], size: int, fits: Callable[[int, int, int], bool]) -> list[Taken]:
    """Take whole pages from the front while they fit; of a page larger than a batch, a part."""
    pictured = bool(pages[0][0].request.images)
    batch: list[Taken] = []
    longest = taken_pages = 0
    while pages and bool(pages[0][0].request.images) == pictured and len(batch) < size:
        part = pages[0][: size - len(batch)]
        longest = max(longest, *(taken.tokens for taken in part))
        if batch and (len(part) < len(pages[0]) or not fits(len(batch) + len(part), longest, taken_pages + 1)):
            break
        while not fits(len(part), longest, 1) and len(part) > 1:
            part = part[: len(part) // 2]
        batch += part
        taken_pages += 1
        pages[0] = pages[0][len(part) :]
        if pages[0]:
            break
        del pages[0]
    return batch


def _failed(row: Row, error: Exception) -> GenerationResult:
    return GenerationResult.failed(row.request.id, request_error(error), tuple(row.notes))


def _joined(parts: Iterable[Prepared]) -> Prepared:
    unmade: list[Row] = []
    whole = Prepared([], [], unmade)
    for part in parts:
        whole.batches.extend(part.batches)
        whole.failed.extend(part.failed)
        unmade.extend(part.unmade)
    return whole
