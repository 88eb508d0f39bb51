"""The model ``vlmhb-reader``: trained on pages like those of the dataset, shipped with the package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vlmhb import NamedModel

NAME = "vlmhb-reader"
FOLDER = Path(__file__).parents[1] / NAME
"""An ordinary model folder, with its card."""


def offer() -> NamedModel:
    """Describe the model; its folder is there."""
    from vlmhb import NamedModel

    return NamedModel(
        name=NAME,
        path=str(FOLDER),
        family="Qwen2-VL",
        description="A Qwen2-VL of 4.7 million parameters that reads the demo's pages, and nothing else.",
    )
