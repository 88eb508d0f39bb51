"""From vLLM's outputs to results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from vlmhb import GenerationRequest, GenerationResult, TokenLogprob
from vlmhb.errors import RequestError

if TYPE_CHECKING:
    from vllm import RequestOutput


def to_result(
    request: GenerationRequest, output: RequestOutput, *, text: str, notes: tuple[str, ...]
) -> GenerationResult:
    """The result of a finished request.

    Args:
        request: what was asked.
        output: the engine's last output for it.
        text: the answer, decoded.
        notes: what was changed on the way.
    """
    answer = output.outputs[0]
    if answer.finish_reason not in ("stop", "length"):
        error = RequestError(f"vLLM ended the request with {answer.finish_reason!r}", "engine")
        return GenerationResult.failed(request.id, error, notes)
    prompt = tuple(output.prompt_token_ids or ())
    clock = times(output.metrics)
    return GenerationResult(
        id=request.id,
        text=text,
        token_ids=tuple(answer.token_ids),
        finish_reason="stop" if answer.finish_reason == "stop" else "length",
        prompt_tokens=len(prompt),
        cached_tokens=output.num_cached_tokens,
        prompt_token_ids=prompt if request.return_prompt_ids else None,
        logprobs=candidates(answer.logprobs, request.logprobs) if request.logprobs else None,
        notes=notes,
        queue_time=clock.queue,
        time_to_first_token=clock.first_token,
        time_per_output_token=clock.per_token,
        total_time=clock.total,
    )


class Times(NamedTuple):
    """Seconds; see :class:`vlmhb.GenerationResult`."""

    queue: float | None = None
    first_token: float | None = None
    per_token: float | None = None
    total: float | None = None


def times(stats: Any) -> Times:
    """Seconds, from vLLM's ``RequestStateStats``.

    ``first_token_latency`` counts from the moment the request was handed over (wall clock); the other marks are of
    one monotonic clock, so only their differences are used.
    """
    if stats is None:
        return Times()
    decode = stats.last_token_ts - stats.first_token_ts
    later = stats.num_generation_tokens - 1
    return Times(
        queue=stats.scheduled_ts - stats.queued_ts,
        first_token=stats.first_token_latency,
        per_token=decode / later if later > 0 else None,
        total=stats.first_token_latency + decode,
    )


def candidates(logprobs: Any, count: int) -> tuple[tuple[TokenLogprob, ...], ...]:
    """The ``count`` most probable candidates of each output token.

    vLLM adds the token that was drawn when it is not among them; it is left out here.
    """
    return tuple(
        tuple(
            TokenLogprob(token_id, entry.logprob)
            for token_id, entry in sorted(position.items(), key=lambda item: item[1].rank)[:count]
        )
        for position in logprobs or ()
    )
