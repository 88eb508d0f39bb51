"""The report's texts in its languages, from one catalogue file."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources

LANGUAGES = ("en", "ru")


class Texts:
    """Looks texts up in one language.

    Raises:
        KeyError: the catalogue lacks the text.
    """

    def __init__(self, language: str) -> None:
        self.language = language

    def __call__(self, key: str, **values: object) -> str:
        """The text, its ``{places}`` filled in."""
        text = catalogue()[key][self.language]
        return text.format(**values) if values else text

    def starting_with(self, prefix: str) -> dict[str, str]:
        """All texts whose keys start so, by the rest of the key."""
        return {k.removeprefix(prefix): t[self.language] for k, t in catalogue().items() if k.startswith(prefix)}


@cache
def catalogue() -> dict[str, dict[str, str]]:
    """Every text by key and language."""
    content = resources.files("vlmhb.report").joinpath("assets/texts.toml").read_text(encoding="utf-8")
    return {
        f"{group}.{key}": languages for group, keys in tomllib.loads(content).items() for key, languages in keys.items()
    }
