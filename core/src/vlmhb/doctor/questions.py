"""What a twin is asked: small and large pictures, none, one and two of them, two scripts, a long text."""

from __future__ import annotations

import io
import random
from collections.abc import Sequence

from vlmhb.contract.request import GenerationRequest, ImageInput, SamplingParams

COUNT = 8
"""Requests of a probe."""
MAX_TOKENS = 20
_RUSSIAN = "Опиши изображение одним предложением."
_TEXTS = (
    "What is the weather like in the city today?",
    _RUSSIAN,
    "Hi",
    " ".join(f"Line {number}: how many animals are in the street?" for number in range(12)),
    "Which colour is the sky? Answer with one word.",
    "Write the number of the document, and the date.",
    "Напиши полный текст страницы.",
    "?",
)
_SIZES = ((160, 120), (60, 100), (224, 224), (90, 91))
_MOST = {1: 4, 2: 2}
"""Number of pictures in a prompt -> most requests with so many."""


def questions(image_counts: Sequence[int]) -> list[GenerationRequest]:
    """The requests of a probe: greedy, 20 tokens each.

    Args:
        image_counts: how many images a prompt of the model may have, of 0, 1 and 2.

    Returns:
        :data:`COUNT` requests with ids such as ``2 images, 1``.
    """
    pictured = [(count, index) for count in (1, 2) if count in image_counts for index in range(_MOST[count])]
    plain = [(0, index) for index in range(COUNT - len(pictured))] if 0 in image_counts else []
    missing = COUNT - len(pictured) - len(plain)
    more = max((count for count in image_counts if count), default=0)
    extra = [(more, _MOST[more] + index) for index in range(missing)] if more else []
    return [_ask(count, index) for count, index in (*plain, *pictured, *extra)]


def _ask(count: int, index: int) -> GenerationRequest:
    kind = ("text", "1 image", "2 images")[count]
    images = [picture(*_SIZES[(index + place) % len(_SIZES)], seed=10 * index + place) for place in range(count)]
    return GenerationRequest.ask(
        f"{kind}, {index + 1}", _TEXTS[index], images, sampling=SamplingParams(max_tokens=MAX_TOKENS)
    )


def picture(width: int, height: int, seed: int) -> ImageInput:
    """A picture of random colours, one for about every 16 pixels, blended into each other; the same for a seed."""
    from PIL import Image

    across, down = max(2, width // 16), max(2, height // 16)
    colours = Image.frombytes("RGB", (across, down), random.Random(seed).randbytes(3 * across * down))
    buffer = io.BytesIO()
    colours.resize((width, height), Image.Resampling.BICUBIC).save(buffer, "PNG")
    return ImageInput(data=buffer.getvalue(), name=f"{width}x{height}-{seed}")
