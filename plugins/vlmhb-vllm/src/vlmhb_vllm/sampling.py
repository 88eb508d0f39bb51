"""From a request's sampling parameters to vLLM's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlmhb import GenerationRequest

if TYPE_CHECKING:
    from vllm import SamplingParams

NEVER = 1 << 30
"""A stream interval that no answer reaches: the engine then reports a request at its first token and at its end."""

LOWEST_TEMPERATURE = 0.01
"""vLLM raises smaller temperatures above 0 to this, since it would divide by nearly nothing."""


def sampling_params(
    request: GenerationRequest, *, max_tokens: int, stop_token_ids: list[int], streaming: bool
) -> tuple[SamplingParams, list[str]]:
    """The engine's parameters for one request, and notes on what they change.

    Every field that a model folder could set is set here, and the tokens that end an answer are exactly the ones
    given, as on every engine. An answer that follows a JSON Schema may end by the tokenizer's end token too: the
    grammar allows nothing else once the value is complete.

    Args:
        request: the request.
        max_tokens: output tokens there is room for.
        stop_token_ids: tokens that end the answer.
        streaming: whether the text is wanted token by token.
    """
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

    wanted = request.sampling
    notes = []
    if 0 < wanted.temperature < LOWEST_TEMPERATURE:
        notes.append(f"temperature {wanted.temperature} was raised to {LOWEST_TEMPERATURE}, vLLM's lowest above 0")
    schema = request.json_schema
    params = SamplingParams(
        max_tokens=max_tokens,
        temperature=max(wanted.temperature, LOWEST_TEMPERATURE) if wanted.temperature else 0.0,
        top_p=wanted.top_p,
        top_k=wanted.top_k,
        repetition_penalty=wanted.repetition_penalty,
        seed=None if wanted.greedy else wanted.seed,
        stop=list(wanted.stop),
        stop_token_ids=stop_token_ids,
        ignore_eos=schema is None,
        logprobs=request.logprobs or None,
        detokenize=bool(wanted.stop) or streaming,
        skip_special_tokens=True,
        output_kind=RequestOutputKind.CUMULATIVE,
        stream_interval=1 if streaming else NEVER,
        structured_outputs=None if schema is None else StructuredOutputsParams(json=schema),
    )
    return params, notes
