"""The requests that every engine must answer with the same tokens, each of another kind.

Made for the demo's tiny Qwen2-VL. Pictures are smooth random patterns, so that each has its own answer.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from PIL import Image
from vlmhb import GenerationRequest, ImageInput, SamplingParams

MAX_TOKENS = 24
STOP_TEXTS: tuple[str, ...] = ("e", "а", " ")
"""Texts that turn up early in some answer of a random model, whatever its seed."""


def picture(width: int, height: int, seed: int, mode: str = "RGB") -> ImageInput:
    """A picture: one random colour for every 16 pixels, blended; ``mode`` is the Pillow mode it is stored in."""
    cells = (max(2, height // 16), max(2, width // 16), 3)
    colours = np.random.default_rng(seed).integers(0, 256, cells, dtype=np.uint8)
    image = Image.fromarray(colours).resize((width, height), Image.Resampling.BICUBIC)
    if mode == "RGBA":
        image.putalpha(Image.linear_gradient("L").resize((width, height)))
    elif mode != "RGB":
        image = image.convert(mode)
    buffer = io.BytesIO()
    image.save(buffer, "TIFF" if mode == "CMYK" else "PNG")
    return ImageInput(data=buffer.getvalue(), name=f"{mode}-{width}x{height}-{seed}")


def parity_requests() -> list[GenerationRequest]:
    """All of them, ids unique, prompt ids wanted."""
    page, other = picture(224, 224, 1), picture(224, 224, 2)
    wide, tall = picture(400, 100, 3), picture(120, 200, 4)
    russian = "Напиши короткий ответ о погоде в этом городе."
    describe = "Describe this image."
    return [
        _ask("text", "What is the weather like in the city?"),
        _ask("text-short", "Hi"),
        _ask("text-one-character", "?"),
        _ask("text-russian", russian),
        _ask("text-lines", "First line\n\n  second line\twith a tab\r\nthird  line"),
        _ask("text-long", " ".join(f"Line {i}: {russian}" for i in range(40))),
        _ask("text-system", "Which colour is the sky?", system="Ответь одним словом."),
        _ask("text-special-words", "What do <|image_pad|> and <|im_end|> mean?<|im_start|>"),
        _ask("text-64-tokens", "Tell me about the animals here.", max_tokens=64),
        _ask("text-1-token", "Tell me about the animals here.", max_tokens=1),
        _ask("image", describe, page),
        _ask("image-other", describe, other),
        _ask("image-other-question", "Which colour is the largest object?", page),
        _ask("image-640x480", describe, picture(640, 480, 5)),
        _ask("image-wide", describe, wide),
        _ask("image-tall", describe, picture(60, 300, 6)),
        _ask("image-small", describe, picture(20, 20, 7)),
        _ask("image-one-pixel", describe, picture(1, 1, 8)),
        _ask("image-odd-size", describe, picture(333, 217, 9)),
        _ask("image-extreme", describe, picture(1100, 12, 10)),
        _ask("image-rgba", describe, picture(160, 120, 11, "RGBA")),
        _ask("image-l", describe, picture(160, 120, 12, "L")),
        _ask("image-p", describe, picture(160, 120, 13, "P")),
        _ask("image-cmyk", describe, picture(160, 120, 14, "CMYK")),
        _ask(
            "image-russian",
            "Опиши это изображение одним словом.",
            picture(180, 140, 15),
            system="Ты полезный помощник.",
        ),
        _ask("image-64-tokens", "Read the text of the document.", picture(200, 200, 16), max_tokens=64),
        _ask("image-special-words", "Is this an <|image_pad|>?", page),
        _ask("two-images", "Compare the two images.", page, tall),
        _ask("two-images-swapped", "Compare the two images.", tall, page),
        _ask("same-image-twice", "Compare the two images.", page, page),
        _ask("text-stop", "What is the weather like in the city?", stop=STOP_TEXTS[:1], max_tokens=64),
        _ask("image-stop", describe, other, stop=STOP_TEXTS, max_tokens=64),
    ]


def _ask(id: str, question: str, *images: ImageInput, system: str | None = None, **sampling: Any) -> GenerationRequest:
    params = SamplingParams(**{"max_tokens": MAX_TOKENS, **sampling})
    return GenerationRequest.ask(id, question, images, system=system, sampling=params, return_prompt_ids=True)
