"""What a model family may decide, and how families are found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from PIL import Image

    from vlmhb.contract.model import ModelSpec
    from vlmhb.prompting.folder import ModelFolder

NO_TEMPLATE_NOTE = "the model has no chat template; the messages were joined as plain text."


class ModelFamily:
    """A family without needs of its own: pictures go to the model's processor as they were decoded.

    A subclass names its ``model_types`` and overrides what differs; :func:`register_family` makes it known.

    Attributes:
        model_types: values of ``model_type`` in config.json that it serves.
        processors: names of processor classes that it serves, whatever the model type: several families may share one
            model type and differ in their processors.
        places_images: whether the prompt's text says where an image stands; otherwise the processor decides.
        image_text: what stands for an image in the text; None takes the processor's ``image_token``.
        word_patterns: regular expressions of words that the processor would take for more than text, besides the
            tokenizer's special tokens.
        padding_side: where shorter prompts of a batch are filled up; models that generate from the prompt's end want
            ``left``, encoders that count positions from the beginning ``right``.
        min_images, max_images: fewest and most images that the architecture takes in one prompt; None is any number.
        same_length: whether only prompts of as many tokens may share a batch.
        adds_begin: whether the tokenizer adds its special tokens to a prompt without a chat template.
        tokens_in_answers: whether special tokens are a part of an answer's text.
        stop_words: tokens that end an answer, besides those that the folder names.
        processor_options: keyword arguments for each call of the processor.
        notes: what of the spec this family cannot follow, one sentence each.
    """

    model_types: ClassVar[tuple[str, ...]] = ()
    processors: ClassVar[tuple[str, ...]] = ()
    places_images: ClassVar[bool] = True
    image_text: ClassVar[str | None] = None
    word_patterns: ClassVar[tuple[str, ...]] = ()
    padding_side: ClassVar[Literal["left", "right"]] = "left"
    min_images: ClassVar[int] = 0
    max_images: ClassVar[int | None] = None
    same_length: ClassVar[bool] = False
    adds_begin: ClassVar[bool] = True
    tokens_in_answers: ClassVar[bool] = False

    def __init__(self, spec: ModelSpec, processor: Any) -> None:
        """Args: the model's spec, and its processor as loaded (the tokenizer, for a text-only model)."""
        self.processor_options: Mapping[str, Any] = {}
        self.stop_words: tuple[str, ...] = ()
        self.notes: tuple[str, ...] = self._ignored_limits(spec)

    def resize(self, image: Image.Image, label: str) -> Image.Image:
        """Bring a picture to the size that the model will see, where the family does that itself.

        Args:
            image: RGB, any size.
            label: what messages call it.

        Raises:
            ImageError: the family cannot take a picture of this shape.
        """
        return image

    def together(self, pictures: Sequence[Sequence[Image.Image]]) -> bool:
        """Whether prompts with these pictures may share a batch without changing each other's answers.

        Args:
            pictures: for each prompt its pictures, at least one.
        """
        return True

    def batched(self, pictures: Sequence[Sequence[Image.Image]]) -> Any:
        """The pictures of a batch as the processor takes them.

        Args:
            pictures: for each prompt its pictures, at least one.
        """
        return [list(row) for row in pictures]

    def written_in_tokens(self, text: str) -> bool:
        """Whether a text of the caller is a prompt in the model's own tokens, which must stay tokens."""
        return False

    def plain_prompt(self, text: str, folder: ModelFolder) -> tuple[str, tuple[str, ...]]:
        """The prompt of a model without a chat template, and notes about it.

        Args:
            text: the messages, joined.
            folder: the model's.

        Raises:
            RequestError: the model cannot be asked this.
        """
        return text, (NO_TEMPLATE_NOTE,)

    def numbered(self, text: str) -> str:
        """A prompt as the processor wants it, where its placeholders are numbered."""
        return text

    def encode(
        self,
        processor: Any,
        texts: Sequence[str],
        pictures: Sequence[Sequence[Image.Image]] | None,
        options: Mapping[str, Any],
    ) -> Any:
        """The tensors of a batch: at least ``input_ids`` and ``attention_mask``, of shape (batch, tokens).

        Args:
            processor: the model's.
            texts: the prompts.
            pictures: for each prompt its pictures, at least one; None for prompts without.
            options: for the tokenizer: padding, special tokens.
        """
        images = None if pictures is None else self.batched(pictures)
        return processor(text=list(texts), images=images, **options, **self.processor_options)

    def model_inputs(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """What of a batch's tensors ``generate`` takes."""
        return inputs

    def image_tokens(self, width: int, height: int) -> int:
        """About how many tokens a picture of this size becomes; only used to batch like with like."""
        return 576

    def _ignored_limits(self, spec: ModelSpec) -> tuple[str, ...]:
        given = [name for name in ("min_pixels", "max_pixels") if getattr(spec, name) is not None]
        if not given:
            return ()
        return (f"{' and '.join(given)} had no effect: this model's processor chooses the size of pictures itself.",)


_FAMILIES: dict[str, type[ModelFamily]] = {}


def register_family(family: type[ModelFamily]) -> type[ModelFamily]:
    """Make a family known for what it serves; a later one replaces an earlier one. Usable as a decorator."""
    for name in (*family.model_types, *family.processors):
        _FAMILIES[name] = family
    return family


def family_of(model_type: str, processor: str = "") -> type[ModelFamily]:
    """The family that serves a processor's class or, where none does, a model type; else the plain one."""
    return _FAMILIES.get(processor) or _FAMILIES.get(model_type, ModelFamily)
