"""Names that users write: what they mean, and what they were probably meant to be."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_FRAMEWORKS = {"huggingface": "hf", "transformers": "hf"}
"""Names of the older project's ``framework`` column, and of the engine itself, that are no backend's name."""


def fold(name: str) -> str:
    """A name without what does not count in names: case, spaces, ``-`` and ``_``."""
    return re.sub(r"[\s_-]+", "", name).casefold()


def canonical_backend(written: str, known: Iterable[str]) -> str:
    """The backend that a ``backend`` or ``framework`` cell means; as written when it is none of those known."""
    wanted = fold(written)
    wanted = _FRAMEWORKS.get(wanted, wanted)
    return next((name for name in known if fold(name) == wanted), _FRAMEWORKS.get(fold(written), written.strip()))


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name that is most like a misspelt one, or None when none is like it."""
    by_fold = {fold(candidate): candidate for candidate in known}
    near = difflib.get_close_matches(fold(name), by_fold, n=1, cutoff=cutoff)
    return by_fold[near[0]] if near else None


def suggestion(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """A sentence that names the nearest known name, or all of them."""
    names = list(known)
    near = nearest(name, names, cutoff)
    return f"Did you mean {near}?" if near else f"Known: {', '.join(names) or 'none'}."
