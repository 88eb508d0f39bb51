"""vlmhb: evaluate vision-language models on document images, on whichever inference engine you pick.

The public names are imported when they are first used, so that ``import vlmhb`` stays cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vlmhb.api import backends, load
    from vlmhb.contract import CONTRACT_VERSION
    from vlmhb.contract.backend import BackendInfo, Capabilities, EngineOption, EnvironmentRecipe
    from vlmhb.contract.check import ModelCheck, ModelFacts, Support
    from vlmhb.contract.dataset import Dataset, DatasetFormat, NamedDataset, NamedModel, Sample
    from vlmhb.contract.hookspecs import hookimpl
    from vlmhb.contract.metric import Metric, Pairs
    from vlmhb.contract.model import GenerationControl, ModelInterface, ModelSpec
    from vlmhb.contract.report import Fragment, ReportEntry, ReportSection, ReportView
    from vlmhb.contract.request import GenerationRequest, ImageInput, ImagePart, Message, SamplingParams, TextPart
    from vlmhb.contract.result import Failure, GenerationResult, TokenLogprob
    from vlmhb.contract.twin import Twin

__version__ = "0.1.0"

_HOME = {
    "vlmhb.api": ("backends", "load"),
    "vlmhb.contract": ("CONTRACT_VERSION",),
    "vlmhb.contract.backend": ("BackendInfo", "Capabilities", "EngineOption", "EnvironmentRecipe"),
    "vlmhb.contract.check": ("ModelCheck", "ModelFacts", "Support"),
    "vlmhb.contract.dataset": ("Dataset", "DatasetFormat", "NamedDataset", "NamedModel", "Sample"),
    "vlmhb.contract.hookspecs": ("hookimpl",),
    "vlmhb.contract.metric": ("Metric", "Pairs"),
    "vlmhb.contract.model": ("GenerationControl", "ModelInterface", "ModelSpec"),
    "vlmhb.contract.report": ("Fragment", "ReportEntry", "ReportSection", "ReportView"),
    "vlmhb.contract.request": (
        "GenerationRequest",
        "ImageInput",
        "ImagePart",
        "Message",
        "SamplingParams",
        "TextPart",
    ),
    "vlmhb.contract.result": ("Failure", "GenerationResult", "TokenLogprob"),
    "vlmhb.contract.twin": ("Twin",),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "CONTRACT_VERSION",
    "BackendInfo",
    "Capabilities",
    "Dataset",
    "DatasetFormat",
    "EngineOption",
    "EnvironmentRecipe",
    "Failure",
    "Fragment",
    "GenerationControl",
    "GenerationRequest",
    "GenerationResult",
    "ImageInput",
    "ImagePart",
    "Message",
    "Metric",
    "ModelCheck",
    "ModelFacts",
    "ModelInterface",
    "ModelSpec",
    "NamedDataset",
    "NamedModel",
    "Pairs",
    "ReportEntry",
    "ReportSection",
    "ReportView",
    "Sample",
    "SamplingParams",
    "Support",
    "TextPart",
    "TokenLogprob",
    "Twin",
    "__version__",
    "backends",
    "hookimpl",
    "load",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'vlmhb' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULE_OF[name]), name)
