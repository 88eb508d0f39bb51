"""The tokenizer: a small byte-level BPE with Qwen2-VL's special tokens and file layout."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vlmhb_demo.tiny_model import bpe, chat, jsonfile

END_OF_TEXT = "<|endoftext|>"
END_OF_TURN = "<|im_end|>"
SPECIAL_TOKENS = (
    END_OF_TEXT,
    "<|im_start|>",
    END_OF_TURN,
    *(f"<|{kind}_{edge}|>" for kind in ("object_ref", "box", "quad", "vision") for edge in ("start", "end")),
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
MERGES = 400

PIECES = "|".join(
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)",
        r"[^\r\n\p{L}\p{N}]?\p{L}+",
        r"\p{N}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
"""How Qwen2 cuts text into pieces before merging; part of the format."""

CORPUS = """
What is the surname on the card? What is the number of the document? What is the date of birth?
What is the total of the receipt? Who is the seller, who is the buyer, and what has to be paid?
Write the full text of the page. Read the answer from the table. Answer with one word, in JSON.
Look at the picture and describe it. How many lines are there? Which colour is the stamp?
Identity card, receipt, invoice, form: date, number, address, street, town, phone, signature, value added tax.
system user assistant You are a helpful assistant. Picture: Video: Please give only the value of the field.
Какая фамилия указана в документе? Какой номер у документа? Какая дата рождения у владельца?
Какая сумма указана в чеке? Кто продавец, кто покупатель, сколько нужно оплатить по счёту?
Напиши полный текст страницы. Прочитай ответ из таблицы. Ответь одним словом, в формате JSON.
Посмотри на картинку и опиши её. Сколько строк на странице? Какого цвета печать?
Удостоверение, кассовый чек, счёт на оплату, анкета: дата, номер, адрес, улица, город, телефон, подпись, налог.
Ты полезный помощник. Укажи только значение поля, без пояснений, так, как оно написано в документе.
"""
"""What the merges are learnt from: the kind of text that the demo asks."""


@dataclass(frozen=True)
class Tokenizer:
    """The finished vocabulary; ``roles`` are whole words that are tokens but not special ones."""

    merges: list[bpe.Pair]
    vocabulary: dict[str, int]
    special: dict[str, int]
    roles: dict[str, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Rows of the embedding: all tokens, rounded up to a multiple of 64 as engines like it."""
        used = len(self.vocabulary) + len(self.special) + len(self.roles)
        return -(-used // 64) * 64

    def write(self, folder: Path, context_length: int, template: str = chat.TEMPLATE) -> None:
        """Write the files that a published Qwen2-VL folder has for its tokenizer."""
        jsonfile.write(folder / "tokenizer.json", self._fast())
        jsonfile.write(folder / "tokenizer_config.json", self._settings(context_length, template))
        jsonfile.write(folder / "chat_template.json", {"chat_template": template})
        jsonfile.write(folder / "vocab.json", self.vocabulary)
        lines = ["#version: 0.2", *(" ".join(pair) for pair in self.merges)]
        (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")

    def _added(self) -> dict[int, dict[str, Any]]:
        special = {token_id: _added(text) for text, token_id in self.special.items()}
        roles = {token_id: _added(text, special=False) for text, token_id in self.roles.items()}
        return {**special, **roles}

    def _fast(self) -> dict[str, Any]:
        byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
        cut = {"type": "Split", "pattern": {"Regex": PIECES}, "behavior": "Isolated", "invert": False}
        return {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [{"id": token_id, **added} for token_id, added in self._added().items()],
            "normalizer": {"type": "NFC"},
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [cut, byte_level]},
            "post_processor": byte_level,
            "decoder": byte_level,
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": None,
                "continuing_subword_prefix": "",
                "end_of_word_suffix": "",
                "fuse_unk": False,
                "byte_fallback": False,
                "ignore_merges": False,
                "vocab": self.vocabulary,
                "merges": self.merges,
            },
        }

    def _settings(self, context_length: int, template: str) -> dict[str, Any]:
        return {
            "add_prefix_space": False,
            "added_tokens_decoder": {str(token_id): added for token_id, added in self._added().items()},
            "additional_special_tokens": [text for text in self.special if text != END_OF_TEXT],
            "bos_token": None,
            "chat_template": template,
            "clean_up_tokenization_spaces": False,
            "eos_token": END_OF_TURN,
            "errors": "replace",
            "model_max_length": context_length,
            "pad_token": END_OF_TEXT,
            "padding_side": "left",
            "split_special_tokens": False,
            "tokenizer_class": "Qwen2Tokenizer",
            "unk_token": None,
        }


def build() -> Tokenizer:
    """Learn the merges and number the tokens: single bytes, then merges, then special tokens."""
    merges = bpe.learn_merges(re.findall(r" ?\w+|[^\w\s]+|\s", CORPUS), MERGES)
    tokens = dict.fromkeys([*sorted(bpe.byte_symbols()), *(left + right for left, right in merges)])
    vocabulary = {token: number for number, token in enumerate(tokens)}
    special = {text: number for number, text in enumerate(SPECIAL_TOKENS, start=len(vocabulary))}
    return Tokenizer(merges, vocabulary, special)


def _added(text: str, special: bool = True) -> dict[str, Any]:
    return {
        "content": text,
        "single_word": not special,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": special,
    }
