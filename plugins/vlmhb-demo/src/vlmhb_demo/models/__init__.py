"""The models that the demo offers, one module each.

A module has ``offer() -> NamedModel``, called when a run is planned: it must leave the model's folder in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from vlmhb_demo.models import reader, tiny_qwen2_vl

if TYPE_CHECKING:
    from vlmhb import NamedModel

OFFERS: tuple[Callable[[], NamedModel], ...] = (reader.offer, tiny_qwen2_vl.offer)


def offered() -> list[NamedModel]:
    """Every model of the demo, its folder ready to be loaded.

    Raises:
        PluginError: a model could not be made; the message says where and why.
    """
    return [offer() for offer in OFFERS]
