"""The text of an answer while it grows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Decode = Callable[[Sequence[int]], str]

_UNFINISHED = "�"


class GrowingText:
    """Turns token ids into text one at a time, and looks for stop texts.

    Only the last tokens are decoded at each step. A character whose bytes are not complete waits for the rest.

    Attributes:
        text: the text so far, complete characters only.
        told: how many characters :meth:`news` and :meth:`rest` have handed out.
    """

    def __init__(self, decode: Decode, stop: Sequence[str] = (), told: int = 0) -> None:
        """Args: ids to text; texts that end the answer; characters that were handed out in an earlier try."""
        self.text = ""
        self._decode = decode
        self._stop = tuple(stop)
        self._longest = max((len(word) for word in stop), default=0)
        self._ids: list[int] = []
        self._prefix = 0
        self._read = 0
        self.told = told

    def push(self, token: int) -> bool:
        """Add a token; returns whether it completed a stop text."""
        self._ids.append(token)
        # Decoded together with the tokens before it, since a token's text may depend on them.
        known = self._decode(self._ids[self._prefix : self._read])
        piece = self._decode(self._ids[self._prefix :])[len(known) :]
        start = max(0, len(self.text) - self._longest)
        found = any((self.text[start:] + piece).find(word) >= 0 for word in self._stop)
        if piece and not piece.endswith(_UNFINISHED):
            self.text += piece
            self._prefix, self._read = self._read, len(self._ids)
        return found

    def news(self) -> str:
        """Text that was not told before and can no longer become part of a stop text."""
        held = next((n for n in range(min(self._longest, len(self.text)), 0, -1) if self._may_stop(n)), 0)
        return self._tell(self.text[: len(self.text) - held])

    def rest(self, final: str) -> str:
        """What is missing of the whole answer."""
        return self._tell(final)

    def _tell(self, text: str) -> str:
        new = text[self.told :]
        self.told = max(self.told, len(text))
        return new

    def _may_stop(self, length: int) -> bool:
        tail = self.text[-length:]
        return any(word.startswith(tail) for word in self._stop)
