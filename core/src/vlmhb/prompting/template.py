"""The chat template of a model, rendered; what it accepts is found out by rendering, not by the model's name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vlmhb.contract.request import ImagePart, Message, TextPart
from vlmhb.errors import RequestError

_PROBE = "vlmhbprobe"
_PROBE_SYSTEM = "vlmhbsystem"

SYSTEM_NOTE = "the model's chat template has no system turn; the system prompt was put in front of the question."
_JOINT = "\n\n"


class ChatTemplate:
    """Renders messages with the model's own template.

    Attributes:
        source: the template's source, empty when the model has none.
        image_text: what one image becomes in the text; empty when the model takes no images.
    """

    def __init__(self, owner: Any, image_token: str | None) -> None:
        """Args: the processor or tokenizer that holds the template, and its placeholder for an image."""
        self._owner = owner
        self.source = _template_of(owner)
        self._as_text = not self._shows([_turn("user", [_text(_PROBE)])], _PROBE)
        self._has_system = self._shows(
            [self._say("system", _PROBE_SYSTEM), self._say("user", _PROBE)], _PROBE_SYSTEM, _PROBE
        )
        self._system_as_text = False
        if self.source and not self._has_system and not self._as_text:
            turns = [_turn("system", _PROBE_SYSTEM), self._say("user", _PROBE)]
            self._has_system = self._system_as_text = self._shows(turns, _PROBE_SYSTEM, _PROBE)
        self._images_as_text = True
        self.image_text = image_token or ""
        if image_token is not None and self.source and not self._as_text:
            self._find_image_text(image_token)

    def arrange(self, messages: Sequence[Message]) -> tuple[Sequence[Message], tuple[str, ...]]:
        """The messages as the template can say them, and notes about what that changed."""
        if not self.source:
            return messages, ()
        if not self._has_system and any(message.role == "system" for message in messages):
            return _without_system(messages), (SYSTEM_NOTE,)
        return messages, ()

    def render(self, messages: Sequence[Message]) -> str:
        """The prompt's text, with the opening of the answer's turn.

        Args:
            messages: as :meth:`arrange` gave them; an image stands where its part stands.

        Raises:
            RequestError: the template refuses these messages (roles out of turn, for example).
        """
        if not self.source:
            return _JOINT.join(self._plain(message) for message in messages)
        try:
            return self._apply([self._turn_of(message) for message in messages])
        except _template_errors() as error:
            raise RequestError(f"the model's chat template refuses this chat: {error}", kind="unsupported") from error

    def _turn_of(self, message: Message) -> dict[str, Any]:
        if self._as_text or (message.role == "system" and self._system_as_text):
            return _turn(message.role, self._plain(message))
        parts = [
            (_text(self.image_text) if self._images_as_text else {"type": "image"})
            if isinstance(part, ImagePart)
            else _text(part.text)
            for part in message.content
        ]
        return _turn(message.role, parts)

    def _plain(self, message: Message) -> str:
        return "".join(self.image_text if isinstance(part, ImagePart) else part.text for part in message.content)

    def _say(self, role: str, text: str) -> dict[str, Any]:
        return _turn(role, text if self._as_text else [_text(text)])

    def _find_image_text(self, image_token: str) -> None:
        """Learn whether and how the template writes an image part itself."""
        without = self._try([_turn("user", [_text(_PROBE)])])
        once = self._try([_turn("user", [{"type": "image"}, _text(_PROBE)])])
        if without is None or once is None or _PROBE not in once or once == without:
            return
        start = _common_prefix(without, once)
        written = once[start : start + len(once) - len(without)]
        if written.strip():
            self._images_as_text = False
            self.image_text = image_token if image_token in written else written.strip()

    def _shows(self, turns: list[dict[str, Any]], *texts: str) -> bool:
        """Whether the template writes these texts once each, and not as the source of a list."""
        rendered = self._try(turns) if self.source else None
        if rendered is None:
            return False
        return all(rendered.count(text) == 1 for text in texts) and "'type'" not in rendered

    def _try(self, turns: list[dict[str, Any]]) -> str | None:
        try:
            return self._apply(turns)
        except _template_errors():
            return None

    def _apply(self, turns: list[dict[str, Any]]) -> str:
        rendered: str = self._owner.apply_chat_template(
            turns, chat_template=self.source, tokenize=False, add_generation_prompt=True
        )
        return rendered


def _template_of(owner: Any) -> str:
    for holder in (owner, getattr(owner, "tokenizer", None)):
        template = getattr(holder, "chat_template", None)
        if isinstance(template, dict):
            template = template.get("default")
        if template:
            return str(template)
    return ""


def _template_errors() -> tuple[type[Exception], ...]:
    """What a template raises on messages that it was not written for."""
    from jinja2 import TemplateError

    return (TemplateError, TypeError, KeyError, IndexError, AttributeError, ValueError)


def _turn(role: str, content: str | list[dict[str, str]]) -> dict[str, Any]:
    return {"role": role, "content": content}


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _without_system(messages: Sequence[Message]) -> list[Message]:
    """System messages put in front of the first user message."""
    system = [part for message in messages if message.role == "system" for part in message.content]
    rest = [message for message in messages if message.role != "system"]
    if not rest:
        return [Message("user", tuple(system))]
    return [Message(rest[0].role, (*system, TextPart(_JOINT), *rest[0].content)), *rest[1:]]


def _common_prefix(one: str, other: str) -> int:
    length = min(len(one), len(other))
    return next((index for index in range(length) if one[index] != other[index]), length)
