"""What a model family may decide, and how families are found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from PIL import Image

    from vlmhb.contract.model import ModelSpec


class ModelFamily:
    """A family without needs of its own: pictures go to the model's processor as they were decoded.

    A subclass names its ``model_types`` and overrides what differs; :func:`register_family` makes it known.

    Attributes:
        model_types: values of ``model_type`` in config.json that it serves.
        places_images: whether the prompt's text says where an image stands; otherwise the processor decides.
        padding_side: where shorter prompts of a batch are filled up; models that generate from the prompt's end want
            ``left``, encoders that count positions from the beginning ``right``.
        max_images: most images that the architecture takes in one prompt; None is any number.
        processor_options: keyword arguments for each call of the processor.
        notes: what of the spec this family cannot follow, one sentence each.
    """

    model_types: ClassVar[tuple[str, ...]] = ()
    places_images: ClassVar[bool] = True
    padding_side: ClassVar[Literal["left", "right"]] = "left"
    max_images: ClassVar[int | None] = None

    def __init__(self, spec: ModelSpec, processor: Any) -> None:
        """Args: the model's spec, and its processor as loaded (the tokenizer, for a text-only model)."""
        self.processor_options: Mapping[str, Any] = {}
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
    """Make a family known for its ``model_types``; a later one replaces an earlier one. Usable as a decorator."""
    for model_type in family.model_types:
        _FAMILIES[model_type] = family
    return family


def family_of(model_type: str) -> type[ModelFamily]:
    """The family that serves a model type; the plain one when none was registered for it."""
    return _FAMILIES.get(model_type, ModelFamily)
