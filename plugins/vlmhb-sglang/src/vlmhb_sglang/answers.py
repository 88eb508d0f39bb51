"""From what SGLang's engine gives to results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vlmhb import GenerationRequest, GenerationResult, TokenLogprob
from vlmhb.errors import ErrorKind, RequestError

from vlmhb_sglang.asking import Question


def to_result(
    request: GenerationRequest, question: Question, output: Mapping[str, Any], *, text: str
) -> GenerationResult:
    """The result of a request that the engine has finished.

    Args:
        request: what was asked.
        question: how the engine was asked.
        output: the engine's last output for it.
        text: the answer, decoded.

    Raises:
        RequestError: the engine gave the request up.
    """
    meta = output["meta_info"]
    reason = meta["finish_reason"]
    if reason["type"] not in ("stop", "length"):
        raise refused(reason.get("message") or f"it ended with {reason['type']!r}")
    ids = tuple(output["output_ids"])
    top = meta.get("output_top_logprobs") if "top_logprobs_num" in question.arguments else None
    return GenerationResult(
        id=request.id,
        text=text,
        token_ids=ids,
        finish_reason=reason["type"],
        prompt_tokens=meta["prompt_tokens"],
        cached_tokens=meta["cached_tokens"],
        prompt_token_ids=question.prompt_ids if request.return_prompt_ids else None,
        logprobs=None if top is None else candidates(top, request.logprobs),
        notes=question.notes,
        **times(meta, len(ids)),
    )


def times(meta: Mapping[str, Any], tokens: int) -> dict[str, float | None]:
    """Seconds, from SGLang's ``meta_info``; its marks with a name in ``_ts`` or ``_time`` are wall clock."""
    total, first = meta.get("e2e_latency"), meta.get("first_token_latency")
    received, started = meta.get("request_received_ts"), meta.get("forward_entry_time")
    queue = None if received is None or started is None else max(0.0, started - received)
    later = None if total is None or first is None or tokens < 2 else (total - first) / (tokens - 1)
    return {"queue_time": queue, "time_to_first_token": first, "time_per_output_token": later, "total_time": total}


def candidates(top: Sequence[Any], count: int) -> tuple[tuple[TokenLogprob, ...], ...]:
    """The ``count`` most probable candidates of each output token, from ``(logprob, id, text)`` triples."""
    return tuple(
        tuple(TokenLogprob(token_id, logprob) for logprob, token_id, *_ in position[:count]) for position in top
    )


def refused(reason: str) -> RequestError:
    """The failure of one request that SGLang would not take or gave up."""
    reason = " ".join(str(reason).split())
    unsupported = "not supported" in reason or "Failed to compile" in reason
    kind: ErrorKind = "unsupported" if unsupported else "engine"
    return RequestError(f"SGLang refused the request: {reason}", kind)
