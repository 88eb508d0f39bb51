"""From a request to what SGLang's engine takes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vlmhb import GenerationRequest
from vlmhb.errors import RequestError

if TYPE_CHECKING:
    from vlmhb.prompting import PromptBuilder

PROGRESS = 32
"""An answer whose text nobody waits for is reported at its first token, and then every so many."""

UNSEEDED = "the seed was not used: SGLang draws the same tokens again only with the option deterministic"
MASKED_LOGPROBS = "no log-probabilities: with a JSON Schema, SGLang gives them only after masking by the grammar"

_NO_TOP_K = 1 << 29
"""Keeps every token, and is still a top_k to SGLang (whose own word for none is twice this). SGLang numbers the
candidates of a draw by token id in a batch without any top_k or top_p, else by rank, greedy requests counting as top_k
1: a seed would mean other draws in other company."""

_PER_TOKEN = ("input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids")
"""What a processor returns about tokens; SGLang gets the ids and works out the rest."""


class Features(dict[str, Any]):
    """What a processor made of a request's pictures.

    SGLang knows it as a dictionary, and some of its own code then looks for attributes, as processors' results have
    them; GLM-4V's gives a picture the positions of plain text where it finds none.
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


@dataclass(frozen=True)
class Question:
    """A request as the engine takes it.

    Attributes:
        arguments: of ``Engine.async_generate``.
        prompt_ids: the prompt, image placeholders expanded.
        notes: what was changed on the way, one sentence each.
    """

    arguments: dict[str, Any]
    prompt_ids: tuple[int, ...]
    notes: tuple[str, ...]


class Asking:
    """Makes questions for one model. Not for use from several threads at once.

    Args:
        builder: makes the model's prompts.
        context: most tokens of prompt and answer together, or None.
        seeded: whether the engine honours seeds.
    """

    def __init__(self, builder: PromptBuilder, *, context: int | None, seeded: bool) -> None:
        self._builder = builder
        self._context = context
        self._seeded = seeded

    def question(self, request: GenerationRequest, name: str, *, streaming: bool) -> Question:
        """Render, tokenize and check one request.

        Args:
            request: what is asked.
            name: the engine's name for it.
            streaming: whether its text is wanted token by token.

        Raises:
            RequestError: it cannot be served.
        """
        from vlmhb.prompting import fit_to_context, prompt_ids

        if request.sampling.repetition_penalty != 1.0:
            raise RequestError(
                "SGLang cannot apply a repetition_penalty to the prompt's tokens, only to the answer's; "
                "leave it at 1 or use another backend.",
                kind="unsupported",
            )
        prepared = self._builder.prepare(request)
        encoded = self._builder.encode([prepared])
        ids = prompt_ids(encoded, 0)
        room, clipped = fit_to_context(len(ids), request, self._context)
        arguments: dict[str, Any] = {
            "input_ids": ids,
            "sampling_params": self._sampling(request, room, streaming),
            "stream": True,
            "rid": name,
        }
        if prepared.images:
            features = {key: value for key, value in encoded.items() if key not in _PER_TOKEN}
            arguments["image_data"] = [Features(features, format="processor_output")]
        notes = [*self._builder.notes, *prepared.notes, *clipped]
        if request.logprobs and request.json_schema is not None:
            notes.append(MASKED_LOGPROBS)
        elif request.logprobs:
            arguments.update(return_logprob=True, top_logprobs_num=request.logprobs, logprob_start_len=-1)
        if not request.sampling.greedy and not self._seeded:
            notes.append(UNSEEDED)
        return Question(arguments, tuple(ids), tuple(notes))

    def _sampling(self, request: GenerationRequest, max_tokens: int, streaming: bool) -> dict[str, Any]:
        """Every parameter that decides which tokens come out, so that nothing else can set it."""
        wanted = request.sampling
        parameters: dict[str, Any] = {
            "max_new_tokens": max_tokens,
            "temperature": wanted.temperature,
            "top_p": wanted.top_p,
            "top_k": wanted.top_k or (_NO_TOP_K if self._seeded else -1),
            "min_p": 0.0,
            "sampling_seed": wanted.seed,
            "stop": list(wanted.stop),
            "stop_token_ids": list(self._builder.stop_ids),
            "skip_special_tokens": True,
            "stream_interval": 1 if streaming else PROGRESS,
        }
        if request.json_schema is not None:
            parameters["json_schema"] = json.dumps(request.json_schema)
        return parameters
