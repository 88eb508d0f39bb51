"""A small tokenizer for twins of folders without one: byte pairs learnt from a few lines, and a plain chat template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

MERGES = 400
END_OF_TEXT = "<|endoftext|>"
END_OF_TURN = "<|im_end|>"
_SPECIAL = (END_OF_TEXT, "<|im_start|>", END_OF_TURN)

_LINES = """
What is the number of the document? What is the date of birth? What is the total of the receipt?
Describe the picture in one sentence. How many people are there, and which colour is the sky in it?
Write the full text of the page. Compare the two images and answer with one word, in JSON.
The weather in the city is fine today, and there are many animals in the street. First line, second line.
Какой номер у документа? Какая дата рождения у владельца? Какая сумма указана в чеке?
Опиши изображение одним предложением. Сколько на нём людей, и какого цвета небо?
Напиши полный текст страницы. Сравни два изображения и ответь одним словом, в формате JSON.
Сегодня в городе хорошая погода, и на улице много животных. Первая строка, вторая строка.
"""

_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}IMAGE{% else %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def generated(tokens: Sequence[str] = (), named: dict[str, str] | None = None, plain: Sequence[str] = ()) -> Any:
    """Make the tokenizer; the same each time.

    Args:
        tokens: a family's special tokens, in the order of their ids.
        named: special tokens that processors ask for by name (``image_token``).
        plain: tokens that are added but not special.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=len(alphabet) + MERGES, initial_alphabet=sorted(alphabet), show_progress=False
    )
    made.train_from_iterator(_LINES.splitlines(), trainer)
    made.add_tokens([AddedToken(text, normalized=False) for text in plain])
    named = named or {}
    every = dict.fromkeys([*_SPECIAL, *tokens, *named.values()])
    made.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in every])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=made,
        eos_token=END_OF_TURN,
        pad_token=END_OF_TEXT,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        extra_special_tokens=named,
    )
    tokenizer.add_special_tokens({"additional_special_tokens": [text for text in every if text not in _SPECIAL]})
    return tokenizer


def template(image_text: str, opening: str = "") -> str:
    """A chat template.

    Args:
        image_text: what it writes for an image.
        opening: what each prompt begins with.
    """
    return opening + _TEMPLATE.replace("IMAGE", image_text.replace("\n", "\\n"))


def template_of_strings() -> str:
    """A chat template that knows texts only: who asks puts an image's placeholder into the text."""
    return (
        "{% for message in messages %}"
        "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
        "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
    )
