"""Settings of a loaded model that cost speed, as rules over its facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple


class Hint(NamedTuple):
    """One rule of an engine.

    Attributes:
        holds: whether it applies, from the facts of the loaded model.
        text: what costs speed and what to set instead, one sentence; may name facts in braces.
    """

    holds: Callable[[Mapping[str, Any]], bool]
    text: str


def with_hints(facts: Mapping[str, Any], rules: Iterable[Hint]) -> dict[str, Any]:
    """The facts with ``hints``: the texts of the rules that apply."""
    return {**facts, "hints": [rule.text.format(**facts) for rule in rules if rule.holds(facts)]}
