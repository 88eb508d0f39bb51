"""What the twins with eyes share: a vision part of 16 patches, and the way their folders are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import common

VISION = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 2,
    "num_hidden_layers": 3,
    "image_size": 56,
    "patch_size": 14,
}

_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}IMAGE{% else %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def text_config(kind: type[Any], **more: Any) -> Any:
    """The language part: LLaMA's sizes of :mod:`common`."""
    return kind(
        hidden_size=common.HIDDEN,
        intermediate_size=common.INTERMEDIATE,
        num_hidden_layers=common.LAYERS,
        num_attention_heads=common.HEADS,
        num_key_value_heads=common.KV_HEADS,
        head_dim=common.HIDDEN // common.HEADS,
        max_position_embeddings=common.CONTEXT,
        **{"tie_word_embeddings": False, **common.IDS, **more},
    )


def tokenizer(folder: Path, image_text: str, tokens: Sequence[str] = (), named: dict[str, str] | None = None) -> Any:
    """The demo's tokenizer with a family's own tokens, and a chat template that writes ``image_text`` for an image."""
    from transformers import PreTrainedTokenizerFast

    folder.mkdir(parents=True, exist_ok=True)
    common.write_tokenizer(folder)
    made = PreTrainedTokenizerFast.from_pretrained(folder, extra_special_tokens=named or {})
    made.add_special_tokens({"additional_special_tokens": [*tokens, *(named or {}).values()]})
    made.chat_template = _TEMPLATE.replace("IMAGE", image_text)
    (folder / "chat_template.json").unlink(missing_ok=True)
    return made


def write(folder: Path, model_class: str, config: Any, processor: Callable[[], Any], **weights: Any) -> Path:
    """Write weights (:func:`common.write`), then the processor over the plain tokenizer."""
    made = processor()
    common.write(folder, model_class, config, **weights)
    (folder / "chat_template.json").unlink(missing_ok=True)
    made.save_pretrained(folder)
    return folder
