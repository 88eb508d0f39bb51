"""The reader's tokenizer: a byte-level BPE whose merges only put the bytes of one character together.

So every letter and digit is one token, and reading is copying, letter by letter. Qwen2-VL's format of turns names the
roles; each of these is an ordinary token of its own, so that a turn costs little.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from vlmhb_demo.tiny_model import bpe
from vlmhb_demo.tiny_model.tokenizer import SPECIAL_TOKENS, Tokenizer

CHARACTERS = "абвгдеёжзийклмнопрстуфхцчшщъыьэюяАБВГДЕЁЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ\u00a0£§«°·»×€₽–—“”„•…№"
"""What has a token of its own beside the single bytes, hence beside all of ASCII."""
ROLES = ("system", "user", "assistant")
TEMPLATE = "\n".join(
    (
        "{%- for message in messages -%}",
        "{{- '<|im_start|>' + message['role'] + '\\n' -}}",
        "{%- if message['content'] is string -%}",
        "{{- message['content'] -}}",
        "{%- else -%}",
        "{%- for content in message['content'] -%}",
        "{%- if content['type'] == 'image' or 'image' in content or 'image_url' in content -%}",
        "{{- '<|vision_start|><|image_pad|><|vision_end|>' -}}",
        "{%- elif content['type'] == 'video' or 'video' in content -%}",
        "{{- '<|vision_start|><|video_pad|><|vision_end|>' -}}",
        "{%- elif 'text' in content -%}",
        "{{- content['text'] -}}",
        "{%- endif -%}",
        "{%- endfor -%}",
        "{%- endif -%}",
        "{{- '<|im_end|>\\n' -}}",
        "{%- endfor -%}",
        "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}",
    )
)
"""Qwen2-VL's chat template without its system turn, which would be a third of a question."""


@cache
def tokenizer() -> Tokenizer:
    """The vocabulary: single bytes, then characters, then special tokens, then the roles."""
    symbols = bpe.byte_symbols()
    merges: dict[bpe.Pair, None] = {}
    for character in CHARACTERS:
        whole = symbols[character.encode()[0]]
        for byte in character.encode()[1:]:
            merges[whole, symbols[byte]] = None
            whole += symbols[byte]
    tokens = dict.fromkeys([*sorted(symbols), *(left + right for left, right in merges)])
    vocabulary = {token: number for number, token in enumerate(tokens)}
    special = {text: number for number, text in enumerate(SPECIAL_TOKENS, start=len(vocabulary))}
    roles = {text: number for number, text in enumerate(ROLES, start=len(vocabulary) + len(special))}
    return Tokenizer(list(merges), vocabulary, special, roles)


def encode(text: str) -> list[int]:
    """The ids of a text without special tokens; what the written tokenizer gives, only without loading it."""
    table = _table()
    return [number for character in text for number in table[character]]


@cache
def _table() -> dict[str, list[int]]:
    symbols, vocabulary = bpe.byte_symbols(), tokenizer().vocabulary
    ascii_letters = [chr(code) for code in range(128)]
    return {
        letter: [vocabulary["".join(symbols[b] for b in letter.encode())]] for letter in [*ascii_letters, *CHARACTERS]
    }


def write(folder: Path, context_length: int) -> None:
    """Write the tokenizer's files as a published Qwen2-VL folder has them."""
    tokenizer().write(folder, context_length, TEMPLATE)
