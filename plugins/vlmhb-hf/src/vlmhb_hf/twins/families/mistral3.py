"""Mistral 3 (Mistral Small 3.1): Pixtral's vision part, four patches a token."""

from __future__ import annotations

from vlmhb_hf.twins.mistral_vision import MistralVision


class Mistral3(MistralVision):
    """Patches are merged by fours."""

    merge = 2


FAMILY = Mistral3()
