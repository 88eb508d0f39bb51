"""What a family adds to the rules for all: a file below ``families`` with an object named ``FAMILY``."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from typing import Any, ClassVar

from vlmhb.errors import ModelLoadError

PICTURE = 56
"""Pixels of a side of the pictures that a generated processor makes."""
PATCH = 14


class Family:
    """A family without needs of its own: a text model.

    Attributes:
        image_text: what the generated chat template writes for an image.
        chat: whether the family has a chat template at all.
        opening: what each generated prompt begins with.
        tokens, named, plain: the generated tokenizer's further tokens, see :func:`vlmhb_hf.twins.tokens.generated`.
        code: the folder below ``twins/code`` whose files the twin's folder brings, where transformers has no classes.
        auto_map: which of its classes ``trust_remote_code`` loads, as config.json says it.
        ids: entry of the config (``vision_config.image_token_id``) -> the token whose id it holds.
        embedding: standard deviation of the embeddings; None takes 1.0, and 0.2 where they are the output layer too:
            with 1.0 such a model says one token for ever, and faults stay hidden.
        gain: of the linear layers: standard deviation times the root of the inputs; None takes 1.4, and 2.0 when tied.
        seed: of the weights.
    """

    image_text: ClassVar[str] = "<image>"
    chat: ClassVar[bool] = True
    opening: ClassVar[str] = ""
    tokens: ClassVar[tuple[str, ...]] = ()
    named: ClassVar[Mapping[str, str]] = {}
    plain: ClassVar[tuple[str, ...]] = ()
    code: ClassVar[str] = ""
    auto_map: ClassVar[Mapping[str, str]] = {}
    ids: ClassVar[Mapping[str, str]] = {}
    embedding: ClassVar[float | None] = None
    gain: ClassVar[float | None] = None
    seed: ClassVar[int] = 11

    def shrink(self, config: dict[str, Any]) -> None:
        """Mend a config that the rules for all have made small."""

    def small_pictures(self, config: dict[str, Any]) -> None:
        """Make pictures small too, where the processor is generated and need not fit the folder's own."""

    def processor(self, tokenizer: Any, config: dict[str, Any]) -> Any:
        """The generated processor, for pictures as small as :meth:`small_pictures` says.

        Args:
            tokenizer: a tokenizer with all the tokens, and its chat template.
            config: the twin's config.

        Raises:
            ModelLoadError: the family has none that could be generated.
        """
        raise ModelLoadError(
            f"the folder has no processor for images, and none is known that could be made for {config['model_type']}."
        )

    def finish(self, model: Any) -> None:
        """Mend the drawn weights."""


def family_of(config: Mapping[str, Any]) -> Family:
    """The family of a config: by its model type and its vision part's, else by its model type; else the plain one."""
    parts = (config.get(name) for name in ("vision_config", "encoder"))
    vision: Mapping[str, Any] = next((part for part in parts if isinstance(part, Mapping)), {})
    kind, inner = config.get("model_type"), vision.get("model_type")
    for name in (f"{kind}_{inner}", str(kind)):
        place = f"vlmhb_hf.twins.families.{name.replace('-', '_').replace('.', '_')}"
        if importlib.util.find_spec(place) is not None:
            found: Family = importlib.import_module(place).FAMILY
            return found
    return Family()


def siglip_sized(part: dict[str, Any]) -> None:
    """Let a vision part look at squares of 56 pixels in patches of 14."""
    part.update(image_size=PICTURE, patch_size=PATCH)
