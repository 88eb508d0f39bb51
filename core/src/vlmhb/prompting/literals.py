"""Words of a question that look like the model's own control tokens stay words.

A tokenizer turns ``<|im_end|>`` or ``<|image_pad|>`` into a control token wherever the text stands, so a question that
quotes one would end its own turn or ask for a picture that is not there. Here every such word of the caller's text is
replaced by a marker, one more special token that only this module knows, before the chat template is rendered. The
whole prompt then goes through the model's processor, and in its ids each marker is replaced by the ids of the word as
plain text. The marker's id never reaches a model, and text without such words gets exactly the processor's own ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from vlmhb.errors import RequestError

MARKER = "<|vlmhb_literal|>"
_PLACEHOLDERS = ("image_token", "video_token", "audio_token")


class Literals:
    """The control words of one tokenizer, and their ids as plain text. Adds the marker to the tokenizer.

    Attributes:
        marker_id: the id that the tokenizer gives to the marker.
    """

    def __init__(self, tokenizer: Any, processor: Any, template: str, patterns: Sequence[str] = ()) -> None:
        """Set up for one model.

        Args:
            tokenizer: the model's.
            processor: the model's.
            template: the source of its chat template.
            patterns: regular expressions of further words.
        """
        from transformers import AddedToken

        tokenizer.add_tokens([AddedToken(MARKER, special=True, normalized=False)], special_tokens=True)
        self.marker_id: int = tokenizer.convert_tokens_to_ids(MARKER)
        self._tokenizer = tokenizer
        words = _control_words(tokenizer, processor, template)
        escaped = (re.escape(word) for word in sorted(words, key=len, reverse=True))
        self._pattern = re.compile("|".join([*escaped, *patterns]))
        self._plain: dict[str, tuple[int, ...]] = {}

    def hide(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Replace control words by the marker.

        Returns:
            The text with markers, and the words that they stand for, in order.
        """
        words = tuple(self._pattern.findall(text))
        return (self._pattern.sub(MARKER, text), words) if words else (text, ())

    def put_back(self, ids: Sequence[int], words: Sequence[str]) -> list[int]:
        """Replace each marker in ids by the plain ids of its word.

        Raises:
            RequestError: the markers are not those of the words (the chat template dropped or repeated some text).
        """
        out: list[int] = []
        for token, plain in self.pieces(ids, words):
            out.extend((token,) if plain is None else plain)
        return out

    def pieces(self, ids: Sequence[int], words: Sequence[str]) -> list[tuple[int, tuple[int, ...] | None]]:
        """Each id, with the plain ids to put in its place where it is a marker."""
        rest = iter(words)
        pieces = [(token, self._ids_of(next(rest, None)) if token == self.marker_id else None) for token in ids]
        if next(rest, None) is not None:
            raise _lost_text()
        return pieces

    def _ids_of(self, word: str | None) -> tuple[int, ...]:
        if word is None:
            raise _lost_text()
        if word not in self._plain:
            self._plain[word] = self._encode_plainly(word)
        return self._plain[word]

    def _encode_plainly(self, word: str) -> tuple[int, ...]:
        # After a line break, because some tokenizers put a space in front of the beginning of a text.
        lead = self._plain_ids("\n")
        ids = self._plain_ids("\n" + word)
        ids = ids[len(lead) :] if ids[: len(lead)] == lead else self._plain_ids(word)
        special = set(self._tokenizer.all_special_ids) | {self.marker_id}
        if special.intersection(ids) - {self._tokenizer.unk_token_id}:
            raise RequestError(f"the text contains {word!r}, which this model's tokenizer cannot write as plain text.")
        return tuple(ids)

    def _plain_ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        return ids


def _control_words(tokenizer: Any, processor: Any, template: str) -> set[str]:
    """Special tokens, other added tokens that the chat template writes, and the processor's placeholders."""
    words = {MARKER}
    for token in tokenizer.added_tokens_decoder.values():
        if token.special or (token.content in template and not token.content.isspace()):
            words.add(token.content)
    words.update(_texts(getattr(processor, name, None) for name in _PLACEHOLDERS))
    words.update(_texts(value for name, value in vars(processor).items() if name.endswith("_token")))
    return words


def _texts(values: Iterable[Any]) -> set[str]:
    # Some tokenizers keep AddedToken objects; other attributes with such names are numbers.
    texts = [getattr(value, "content", value) for value in values]
    return {text for text in texts if isinstance(text, str) and text.strip()}


def _lost_text() -> RequestError:
    return RequestError(
        "the model's chat template dropped or repeated a part of the text that contains control words; "
        "ask without them.",
        kind="unsupported",
    )
