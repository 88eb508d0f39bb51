"""Idefics3: pictures cut into tiles of 56 pixels, 4 tokens a tile, with words around them."""

from __future__ import annotations

from pathlib import Path

from . import visual

ROWS = 2
TOKENS = ["<fake_token_around_image>", "<image>", "<global-img>", "<end_of_utterance>"]


def make(folder: Path) -> Path:
    """Write the twin."""
    from transformers import Idefics3Config, Idefics3ImageProcessor, Idefics3Processor, LlamaConfig
    from transformers.models.idefics3.configuration_idefics3 import Idefics3VisionConfig

    tiles = [f"<row_{row}_col_{column}>" for row in range(1, ROWS + 1) for column in range(1, ROWS + 1)]
    tokens = visual.tokenizer(folder, "<image>", [*TOKENS, *tiles])
    config = Idefics3Config(
        vision_config=Idefics3VisionConfig(**visual.VISION),
        text_config=visual.text_config(LlamaConfig),
        image_token_id=tokens.convert_tokens_to_ids("<image>"),
        scale_factor=2,
        tie_word_embeddings=False,
    )
    return visual.write(
        folder,
        "Idefics3ForConditionalGeneration",
        config,
        lambda: Idefics3Processor(
            Idefics3ImageProcessor(size={"longest_edge": 112}, max_image_size={"longest_edge": 56}),
            tokens,
            image_seq_len=4,
            chat_template=tokens.chat_template,
        ),
    )
