"""The model ``tiny-qwen2-vl``: made on first use, kept in the user's cache."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vlmhb import NamedModel

NAME = "tiny-qwen2-vl"


def offer() -> NamedModel:
    """Make the model unless the cache holds it already, and describe it.

    Raises:
        PluginError: the cache cannot be written.
    """
    from vlmhb import NamedModel

    return NamedModel(
        name=NAME,
        path=str(folder()),
        family="Qwen2-VL",
        description="A randomly initialised Qwen2-VL of 1.1 million parameters: its answers are noise.",
    )


def folder() -> Path:
    """The model's folder under the user's cache, made if need be."""
    from platformdirs import user_cache_path

    from vlmhb_demo import tiny_model
    from vlmhb_demo.cache import made_once

    place = user_cache_path("vlmhb") / "models" / f"{NAME}-{tiny_model.VERSION}"
    return made_once(place, tiny_model.make, tiny_model.FILES)
