"""What is asked of a model: messages with images, sampling parameters, limits."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import msgspec

from vlmhb.errors import RequestError

DEFAULT_MAX_TOKENS = 256
"""Output tokens a request may use when nobody said otherwise; shown in ``--help`` and stored with every run."""


class SamplingParams(msgspec.Struct, frozen=True, kw_only=True):
    """How output tokens are chosen. One meaning on every engine; nothing is taken from the model's own folder.

    The default is greedy decoding.

    Attributes:
        max_tokens: most output tokens, at least 1.
        temperature: 0 is greedy (the most probable token, always); otherwise logits are divided by it.
        top_p: keep the smallest set of tokens whose probabilities sum to at least this, in (0, 1]; 1 keeps all.
        top_k: keep the k most probable tokens; 0 keeps all.
        repetition_penalty: 1 is off; above 1 makes tokens of the prompt and the output so far less likely
            (Keskar et al., 2019, arXiv:1909.05858).
        seed: seed of the random draws when temperature is above 0; the same request with the same seed gives
            the same tokens on the same engine, alone or in a batch.
        stop: texts that end the answer; the answer is cut before the one that was met.
    """

    max_tokens: int = DEFAULT_MAX_TOKENS
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    repetition_penalty: float = 1.0
    seed: int = 0
    stop: tuple[str, ...] = ()

    @property
    def greedy(self) -> bool:
        """Whether every token is the most probable one."""
        return self.temperature == 0.0

    def problems(self) -> dict[str, str]:
        """What is out of range, as parameter name -> sentence; empty when all is well."""
        found: dict[str, str] = {}
        if self.max_tokens < 1:
            found["max_tokens"] = f"max_tokens must be at least 1, not {self.max_tokens}"
        if not 0.0 <= self.temperature < float("inf"):
            found["temperature"] = f"temperature must be 0 or more, not {self.temperature}"
        if not 0.0 < self.top_p <= 1.0:
            found["top_p"] = f"top_p must be above 0 and at most 1, not {self.top_p}"
        if self.top_k < 0:
            found["top_k"] = f"top_k must be 0 (off) or more, not {self.top_k}"
        if not 0.0 < self.repetition_penalty < float("inf"):
            found["repetition_penalty"] = f"repetition_penalty must be above 0, not {self.repetition_penalty}"
        if not 0 <= self.seed < 2**63:
            found["seed"] = f"seed must be between 0 and 2^63 - 1, not {self.seed}"
        if any(not text for text in self.stop):
            found["stop"] = "a stop text must not be empty"
        return found


class ImageInput(msgspec.Struct, frozen=True, kw_only=True):
    """One image: a file on disk or an encoded file in memory (exactly one of the two).

    Attributes:
        path: absolute path of an image file.
        data: the bytes of an encoded image file (PNG, JPEG, ...).
        name: what messages call the image; the file name when empty.
    """

    path: str | None = None
    data: bytes | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if (self.path is None) == (self.data is None):
            raise RequestError("an image needs either a path or data, and not both")

    @property
    def label(self) -> str:
        """The name to use in messages."""
        return self.name or (Path(self.path).name if self.path else "image")


class TextPart(msgspec.Struct, frozen=True, tag="text"):
    """A piece of text in a message."""

    text: str


class ImagePart(msgspec.Struct, frozen=True, tag="image"):
    """The place of one image in a message."""

    image: ImageInput


class Message(msgspec.Struct, frozen=True):
    """One turn of a chat."""

    role: Literal["system", "user", "assistant"]
    content: tuple[TextPart | ImagePart, ...]


class GenerationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to ask a model.

    Attributes:
        id: the caller's name for it, unique within one call; its result carries the same id.
        messages: the chat so far; the last message is the user's.
        sampling: how output tokens are chosen.
        json_schema: JSON Schema that the answer must follow, for engines with that capability.
        return_prompt_ids: put the prompt's token ids into the result (image placeholders expanded).
        logprobs: how many of the most probable candidates to return for each output token; 0 is none.
    """

    id: str
    messages: tuple[Message, ...]
    sampling: SamplingParams = SamplingParams()
    json_schema: dict[str, Any] | None = None
    return_prompt_ids: bool = False
    logprobs: int = 0

    @classmethod
    def ask(
        cls,
        id: str,
        question: str,
        images: Iterable[ImageInput] = (),
        *,
        system: str | None = None,
        sampling: SamplingParams | None = None,
        **fields: Any,
    ) -> GenerationRequest:
        """The usual request: images first, in order, then the question, after an optional system prompt."""
        parts: list[TextPart | ImagePart] = [ImagePart(image) for image in images]
        parts.append(TextPart(question))
        messages = [Message("system", (TextPart(system),))] if system else []
        messages.append(Message("user", tuple(parts)))
        return cls(id=id, messages=tuple(messages), sampling=sampling or SamplingParams(), **fields)

    @property
    def images(self) -> tuple[ImageInput, ...]:
        """The request's images, in the order in which the messages name them."""
        return tuple(part.image for m in self.messages for part in m.content if isinstance(part, ImagePart))

    @property
    def text(self) -> str:
        """All text parts, one a line."""
        return "\n".join(part.text for m in self.messages for part in m.content if isinstance(part, TextPart))
