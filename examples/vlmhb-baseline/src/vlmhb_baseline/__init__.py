"""The engine ``baseline``: answers without looking at the page. What a model scores above it comes from the page."""

from __future__ import annotations

from importlib import metadata

from vlmhb import BackendInfo, EngineOption, ModelInterface, ModelSpec, hookimpl

vlmhb_contract = 1

OPTIONS = (
    EngineOption(name="answer", type="str", default="", help="the answer to questions of which nothing was learnt"),
    EngineOption(
        name="learn_from", type="str", help="annotation.csv from which the most frequent answer to a question is learnt"
    ),
)


@hookimpl
def vlmhb_backend_info(backend: str) -> BackendInfo:
    """Describe the engine."""
    return BackendInfo(
        name=backend,
        engine="vlmhb-baseline",
        engine_version=metadata.version("vlmhb-baseline"),
        devices=("cpu",),
        options=OPTIONS,
        needs_model_files=False,
    )


@hookimpl
def vlmhb_load(backend: str, spec: ModelSpec) -> ModelInterface:
    """Learn the answers."""
    from vlmhb_baseline.engine import BaselineModel

    model = BaselineModel(backend)
    model.load_spec(spec)
    return model
