"""What came back for one request."""

from __future__ import annotations

from typing import Literal

import msgspec

from vlmhb.errors import ErrorKind, RequestError

FinishReason = Literal["stop", "length", "error", "skipped"]
"""Why a request ended: the model or a stop text ended it, ``max_tokens`` or the context did, it failed, or it
was never started because the run was told to stop."""


class Failure(msgspec.Struct, frozen=True):
    """Why one request has no answer."""

    kind: ErrorKind
    message: str


class TokenLogprob(msgspec.Struct, frozen=True, array_like=True):
    """One candidate for one output token; the log-probability is the model's own, before temperature."""

    token_id: int
    logprob: float


class GenerationResult(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one request. A failed request is a result too, never an exception.

    Times are seconds; a value that the engine cannot measure is None, never an estimate.

    Attributes:
        id: the request's id.
        text: the answer, without special tokens and without the stop text that ended it.
        token_ids: output token ids as generated, including the one that ended the answer.
        finish_reason: why it ended.
        prompt_tokens: tokens of the prompt, image placeholders expanded.
        cached_tokens: how many of them came from the engine's prefix cache.
        queue_time: from the moment the engine got the request until it started on it.
        time_to_first_token: from the same moment until the first output token was there.
        time_per_output_token: mean time between output tokens after the first.
        total_time: from the moment the engine got the request until its last token.
        failure: why there is no answer; set exactly when ``finish_reason`` is ``error``.
        notes: what was changed, retried or ignored for this request, one sentence each.
        prompt_token_ids: the prompt's token ids, when the request asked for them.
        logprobs: per output token its most probable candidates, best first, when the request asked for them.
    """

    id: str
    text: str = ""
    token_ids: tuple[int, ...] = ()
    finish_reason: FinishReason
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    queue_time: float | None = None
    time_to_first_token: float | None = None
    time_per_output_token: float | None = None
    total_time: float | None = None
    failure: Failure | None = None
    notes: tuple[str, ...] = ()
    prompt_token_ids: tuple[int, ...] | None = None
    logprobs: tuple[tuple[TokenLogprob, ...], ...] | None = None

    @classmethod
    def failed(cls, id: str, error: RequestError, notes: tuple[str, ...] = ()) -> GenerationResult:
        """The result of a request that could not be served."""
        return cls(id=id, finish_reason="error", failure=Failure(error.kind, str(error)), notes=notes)

    @property
    def ok(self) -> bool:
        """Whether there is an answer (an empty one is an answer)."""
        return self.finish_reason in ("stop", "length")
