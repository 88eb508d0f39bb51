"""Model families that need their own preparation of images, one small file each."""

from __future__ import annotations

from vlmhb.prompting.families.base import ModelFamily, family_of, register_family
from vlmhb.prompting.families.florence2 import Florence2
from vlmhb.prompting.families.got_ocr2 import GotOcr2
from vlmhb.prompting.families.minicpmv import MiniCPMV
from vlmhb.prompting.families.mllama import Mllama
from vlmhb.prompting.families.phi3_v import Phi3V
from vlmhb.prompting.families.phi4_multimodal import Phi4Multimodal
from vlmhb.prompting.families.qwen_vl import QwenVL
from vlmhb.prompting.families.readers import Donut, Reader

__all__ = [
    "Donut",
    "Florence2",
    "GotOcr2",
    "MiniCPMV",
    "Mllama",
    "ModelFamily",
    "Phi3V",
    "Phi4Multimodal",
    "QwenVL",
    "Reader",
    "family_of",
    "register_family",
]

register_family(QwenVL)
register_family(Florence2)
register_family(GotOcr2)
register_family(MiniCPMV)
register_family(Mllama)
register_family(Phi3V)
register_family(Phi4Multimodal)
register_family(Reader)
register_family(Donut)
