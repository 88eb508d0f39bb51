"""What a cell of a config file holds. Every parser takes the cell's text, which is not empty, and evaluates nothing."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

from vlmhb.config.names import nearest
from vlmhb.contract.backend import EngineOption
from vlmhb.data.lists import parse_list

_MOST_DIGITS = 18
_INT = re.compile(r"([+-]?[0-9]+)(?:[.,]0+)?")
_BOOLS = {"true": True, "yes": True, "1": True, "1.0": True, "false": False, "no": False, "0": False, "0.0": False}
_PAIR = re.compile(r"""\s*([\w.-]+)\s*=\s*("[^"]*"|'[^']*'|[^,;]*?)\s*(?:[,;]|$)""")


class CellError(ValueError):
    """A cell is wrong; ``hint`` says what to write instead."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class BareText(str):
    """A value written without quotes or JSON, so that its type is still open: ``8`` in ``batch_size=8``."""

    __slots__ = ()


def parse_text(text: str) -> str:
    """The text itself."""
    return text


def parse_names(text: str) -> tuple[str, ...]:
    """``['CER', 'WER']``, ``CER, WER`` or ``CER; WER``.

    Raises:
        CellError: the list is not closed or not readable.
    """
    try:
        return parse_list(text)
    except ValueError as error:
        raise CellError(f"{error}.", "Write a list as ['CER', 'WER'] or CER,WER.") from error


def parse_stop(text: str) -> tuple[str, ...]:
    r"""One stop text as it stands, or a bracket list of them, in which ``\n`` is a line break."""
    return parse_names(text) if text.startswith("[") else (text,)


def parse_bool(text: str) -> bool:
    """``True`` or ``False``; also ``yes``, ``no``, ``1``, ``0``; case does not count."""
    value = _BOOLS.get(text.casefold())
    if value is None:
        raise CellError(f"{text!r} is neither True nor False.", "Write True or False.")
    return value


def parse_int(text: str) -> int:
    """A whole number; ``16.0``, as pandas writes it, is one."""
    match = _INT.fullmatch(text)
    if match is None:
        raise CellError(f"{text!r} is not a whole number.", "Write digits only, for example 256.")
    if len(text) > _MOST_DIGITS:
        raise CellError(f"{text!r} is too large.", f"Write at most {_MOST_DIGITS} digits.")
    return int(match[1])


def parse_float(text: str) -> float:
    """A number with a decimal point or a decimal comma."""
    try:
        value = float(text.replace(",", ".")) if "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if math.isinf(value) and any(char.isdigit() for char in text):
        raise CellError(f"{text!r} is too large.")
    if not math.isfinite(value):
        raise CellError(f"{text!r} is not a number.", "Write it like 0.7 or 0,7.")
    return value


def parse_pixels(text: str) -> int:
    """A number of pixels, also as a product as model cards have it: ``1280*28*28``."""
    pixels = 1
    for factor in text.split("*"):
        pixels *= parse_int(factor.strip())
    if pixels < 1:
        raise CellError(f"{text!r} is not a number of pixels.", "Write for example 1003520 or 1280*28*28.")
    return pixels


def parse_positive(text: str) -> int:
    """A whole number of at least 1."""
    value = parse_int(text)
    if value < 1:
        raise CellError(f"{text!r} is less than 1.")
    return value


def one_of(*choices: str) -> Callable[[str], str]:
    """A parser for one of several words; case does not count."""

    def parse(text: str) -> str:
        if text.casefold() not in choices:
            near = nearest(text, choices)
            raise CellError(f"{text!r} is not one of {', '.join(choices)}.", near and f"Did you mean {near}?")
        return text.casefold()

    return parse


def parse_options(text: str) -> dict[str, Any]:
    """``{"batch_size": 8}`` (JSON), or ``batch_size=8,attn_implementation=sdpa``.

    Raises:
        CellError: it is neither, or a name stands in it twice.
    """
    if text.startswith("{"):
        return _json_options(text)
    options: dict[str, Any] = {}
    at = 0
    while at < len(text):
        match = _PAIR.match(text, at)
        if match is None:
            raise CellError(f"the options {text!r} cannot be read at {text[at:]!r}.", _OPTIONS_HINT)
        name, value = match[1], match[2]
        if name in options:
            raise CellError(f"the option {name} stands twice in {text!r}.")
        quoted = len(value) > 1 and value[0] in "\"'"
        options[name] = value[1:-1] if quoted else BareText(value)
        at = match.end()
    return options


def fit_option(option: EngineOption, value: Any) -> Any:
    """The value of an engine option, with text of an open type read as the option's own type.

    Raises:
        CellError: the text is nothing of that type.
    """
    if not isinstance(value, BareText):
        return value
    text = str(value)
    if option.type == "json":
        try:
            return json.loads(text)
        except ValueError:
            return text
    if text.casefold() in ("none", "null"):
        return None
    try:
        return _OPTION_PARSERS[option.type](text)
    except CellError as error:
        raise CellError(f"option {option.name}: {error}", error.hint) from error


def plain_value(value: Any) -> Any:
    """The value of an option that no engine gives a type: open text is text."""
    return str(value) if isinstance(value, BareText) else value


_OPTION_PARSERS: dict[str, Callable[[str], Any]] = {
    "int": parse_int,
    "float": parse_float,
    "bool": parse_bool,
    "str": parse_text,
}
_OPTIONS_HINT = 'Write them as {"batch_size": 8} (JSON, double quotes) or batch_size=8.'


def _json_options(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text, object_pairs_hook=_unique)
    except CellError:
        raise
    except (ValueError, RecursionError) as error:
        raise CellError(f"the options {text!r} are no JSON object: {error}.", _OPTIONS_HINT) from error
    assert isinstance(value, dict)  # JSON that begins with a brace is an object
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise CellError(f"the option {twice[0]} stands twice.")
    return dict(pairs)
