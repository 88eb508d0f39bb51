"""Readers: a vision encoder and a text decoder, whose prompt is the beginning of the decoder's own text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from vlmhb.errors import RequestError
from vlmhb.prompting.families.base import ModelFamily

if TYPE_CHECKING:
    from PIL import Image

    from vlmhb.contract.model import ModelSpec
    from vlmhb.prompting.folder import ModelFolder

_TASK = re.compile(r"<s_[^<>]+>")
_QUESTION = ("<s_docvqa>", "<s_question>", "</s_question>", "<s_answer>", "</s_answer>")


class Reader(ModelFamily):
    """Reads one picture and takes no question (TrOCR, Nougat): the prompt is the token that the decoder starts with."""

    model_types: ClassVar[tuple[str, ...]] = ("vision-encoder-decoder",)
    places_images: ClassVar[bool] = False
    padding_side: ClassVar[Literal["left", "right"]] = "right"
    min_images: ClassVar[int] = 1
    max_images: ClassVar[int | None] = 1
    same_length: ClassVar[bool] = True
    adds_begin: ClassVar[bool] = False

    def __init__(self, spec: ModelSpec, processor: Any) -> None:
        super().__init__(spec, processor)
        self.tokenizer = processor.tokenizer

    def plain_prompt(self, text: str, folder: ModelFolder) -> tuple[str, tuple[str, ...]]:
        """The start token; a question is left out, and the note says so."""
        start = self.start_token(folder)
        if start is None:
            raise RequestError("the model's configs do not say which token its decoder starts with.", "unsupported")
        asked = ("this model reads a picture and takes no question; the question was left out.",)
        return start, asked if text.strip() else ()

    def encode(
        self,
        processor: Any,
        texts: Sequence[str],
        pictures: Sequence[Sequence[Image.Image]] | None,
        options: Mapping[str, Any],
    ) -> Any:
        """``pixel_values`` for the encoder; ``input_ids`` are what the decoder begins with."""
        from transformers import BatchFeature

        pixels = processor(images=[picture for row in pictures or () for picture in row], return_tensors="pt")
        encoded = self.tokenizer(list(texts), **options)
        names = ("input_ids", "attention_mask")
        return BatchFeature({**{name: encoded[name] for name in names}, "pixel_values": pixels["pixel_values"]})

    def model_inputs(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Without the mask, which transformers would take for one over the picture; rows are of one length."""
        return {name: value for name, value in inputs.items() if name != "attention_mask"}

    def image_tokens(self, width: int, height: int) -> int:
        """A picture takes no place in the decoder's text."""
        return 0

    def start_token(self, folder: ModelFolder) -> str | None:
        """What the decoder starts with, by the folder's configs; None where they do not say."""
        configs = (folder.generation_config, folder.config, folder.text_config)
        found = (config.get("decoder_start_token_id") for config in configs)
        start = next((token for token in found if token is not None), None)
        return None if start is None else str(self.tokenizer.convert_ids_to_tokens(start))


class Donut(Reader):
    """Donut: the decoder's text begins with a task in tokens of its own, and its answer is written in such tokens.

    A text that begins with one of the tokenizer's task tokens (``<s_cord-v2>``) is the prompt as it stands. A model
    with the tokens of questions gets ``<s_docvqa><s_question>...</s_question><s_answer>``, the way it was trained
    (Kim et al. 2022, arXiv:2111.15664, section 3.2). Any other takes no question; it begins with its start token.
    """

    processors: ClassVar[tuple[str, ...]] = ("DonutProcessor",)
    model_types: ClassVar[tuple[str, ...]] = ()
    tokens_in_answers: ClassVar[bool] = True

    def __init__(self, spec: ModelSpec, processor: Any) -> None:
        super().__init__(spec, processor)
        self._added: frozenset[str] = frozenset(self.tokenizer.get_added_vocab())
        self.answers_questions = self._added.issuperset(_QUESTION)
        self.stop_words = _QUESTION[-1:] if self.answers_questions else ()

    def written_in_tokens(self, text: str) -> bool:
        """Whether it begins with a task token that the tokenizer has."""
        task = _TASK.match(text)
        return task is not None and task[0] in self._added

    def plain_prompt(self, text: str, folder: ModelFolder) -> tuple[str, tuple[str, ...]]:
        """A task prompt, or a question in the tokens around it."""
        if self.written_in_tokens(text):
            return text, ()
        if self.answers_questions:
            task, begin, end, answer, _ = _QUESTION
            return f"{task}{begin}{text}{end}{answer}", ()
        if self.start_token(folder) is None:
            tasks = sorted(token for token in self._added if _TASK.fullmatch(token))
            raise RequestError(
                "this model takes no question but the token of a task, and its configs name none. Ask with one of its "
                f"tokens: {', '.join(tasks[:8]) or 'it has none'}."
            )
        return super().plain_prompt(text, folder)
