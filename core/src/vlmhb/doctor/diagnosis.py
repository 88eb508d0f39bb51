"""Everything about one model: files, memory and every engine's verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from vlmhb.contract.check import ModelCheck, ModelFacts, Support, Verdict
from vlmhb.contract.model import ModelSpec
from vlmhb.discovery.origin import how_to_get
from vlmhb.discovery.registry import OFFICIAL_BACKENDS
from vlmhb.doctor.ask import ask
from vlmhb.doctor.devices import devices
from vlmhb.doctor.files import FileGroup, look
from vlmhb.doctor.memory import Memory, estimate
from vlmhb.doctor.weights import BYTES, read_weights
from vlmhb.engines import Engines
from vlmhb.errors import VlmhbError
from vlmhb.prompting.families import ModelFamily, family_of
from vlmhb.prompting.folder import ModelFolder, open_model_folder, sampling_defaults_of
from vlmhb.prompting.limits import context_length


class EngineVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What one implementation of one engine makes of the model.

    Attributes:
        backend, engine, version: the engine; version is None when it is not installed.
        implementation: ``native`` or ``transformers``; empty when the engine could not be asked.
        verdict, reason, advice, notes: as in :class:`vlmhb.Support`.
        chosen: whether loading the model as asked takes this one.
    """

    backend: str
    engine: str
    version: str | None
    implementation: str
    verdict: Verdict
    reason: str = ""
    advice: str = ""
    notes: tuple[str, ...] = ()
    chosen: bool = False


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What ``vlmhb doctor`` tells.

    Attributes:
        model: as the user wrote it.
        path: its folder.
        architectures, model_type: as config.json names them.
        family: ``plain``, or the name of the model family in vlmhb that prepares its images.
        modality: ``text``, or ``image and text``.
        context: most tokens of prompt and answer together; None when nothing limits them.
        quantization: the method that config.json names, or None.
        own_code: whether the folder brings Python code.
        files: what is there and what is missing.
        sampling_defaults: settings of generation_config.json that would change answers, and that vlmhb leaves out.
        memory: sizes.
        engines: verdicts.
    """

    model: str
    path: str
    architectures: tuple[str, ...]
    model_type: str
    family: str
    modality: Literal["text", "image and text"]
    context: int | None
    quantization: str | None
    own_code: bool
    files: tuple[FileGroup, ...]
    sampling_defaults: dict[str, Any]
    memory: Memory
    engines: tuple[EngineVerdict, ...]

    def can(self) -> bool:
        """Whether one of the engines asked loads the model as asked."""
        return any(entry.chosen and entry.verdict == "supported" for entry in self.engines)


def diagnose(
    model: str,
    spec: ModelSpec,
    engines: Engines,
    backends: Sequence[str],
    *,
    fresh: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Diagnosis:
    """Look at a model and ask engines about it.

    Args:
        model: as the user wrote it.
        spec: the same, with the path of a folder.
        engines: knows the engines.
        backends: names of those to ask.
        fresh: ask again what was asked before.
        say: told in a sentence what takes long.

    Raises:
        ModelLoadError: the folder holds no readable config, or damaged weights.
    """
    folder = open_model_folder(spec)
    files = look(folder)
    verdicts: list[EngineVerdict] = []
    facts: ModelFacts | None = None
    for backend in backends:
        answer = _ask(engines, backend, spec, fresh, say)
        found = getattr(answer, "facts", None)
        facts = found if facts is None or (found and found.parameters) else facts
        verdicts += _verdicts(engines, backend, spec, answer, files[-1])
    dtype, context = _dtype(folder, spec), context_length(folder, spec)
    family = family_of(folder.model_type, folder.processor_class)
    return Diagnosis(
        model=model,
        path=str(folder.path),
        architectures=tuple(folder.config.get("architectures") or ()),
        model_type=folder.model_type,
        family="plain" if family is ModelFamily else family.__name__,
        modality="image and text" if folder.expects_images else "text",
        context=context,
        quantization=_quantization(folder),
        own_code=folder.own_code,
        files=tuple(files),
        sampling_defaults=sampling_defaults_of(folder.path),
        memory=estimate(read_weights(folder), facts, folder.text_config, context, dtype, devices()),
        engines=tuple(verdicts),
    )


def _ask(
    engines: Engines, backend: str, spec: ModelSpec, fresh: bool, say: Callable[[str], None]
) -> ModelCheck | VlmhbError:
    try:
        known = {option.name for option in engines.backend_info(backend).options}
        own = {name: value for name, value in spec.options.items() if name in known}
        return ask(engines, backend, msgspec.structs.replace(spec, options=own), fresh=fresh, say=say)
    except VlmhbError as error:
        return error


def _verdicts(
    engines: Engines, backend: str, spec: ModelSpec, answer: ModelCheck | VlmhbError, weights: FileGroup
) -> list[EngineVerdict]:
    try:
        info = engines.backend_info(backend)
        engine, version = info.engine, info.engine_version
    except VlmhbError:
        engine, version = "", None
    if isinstance(answer, VlmhbError):
        absent = version is None and backend in OFFICIAL_BACKENDS
        advice = f"Get it with: {how_to_get(backend)}." if absent else ""
        reason = "it is not installed." if absent else str(answer)
        verdict = EngineVerdict(
            backend=backend, engine=engine, version=version, implementation="", verdict="unknown", reason=reason,
            advice=advice, chosen=True,
        )  # fmt: skip
        return [verdict]
    chosen = answer.chosen(spec)
    return [
        EngineVerdict(
            backend=backend,
            engine=engine,
            version=version,
            chosen=support is chosen,
            **msgspec.structs.asdict(with_weights(_with_another_way(support, answer), weights)),
        )
        for support in answer.supports
    ]


def _with_another_way(support: Support, check: ModelCheck) -> Support:
    """Name the engine's other implementation where this one refuses and that one does not."""
    other = next((entry for entry in check.supports if entry.verdict == "supported"), None)
    if support.verdict != "refused" or other is None:
        return support
    advice = f"{support.advice} It loads with -o model_impl={other.implementation}.".strip()
    return msgspec.structs.replace(support, advice=advice)


def with_weights(support: Support, weights: FileGroup) -> Support:
    """A verdict is about the model; where a part of its weights is here, the rest is what stands in the way."""
    if not weights.missing or support.verdict != "supported":
        return support
    if not weights.found:
        return msgspec.structs.replace(support, notes=(*support.notes, "the weights are not in the folder yet."))
    return msgspec.structs.replace(
        support,
        verdict="condition",
        reason=f"a part of the weights is not in the folder: {weights.missing}.",
        advice="Finish the download.",
    )


def _dtype(folder: ModelFolder, spec: ModelSpec) -> str:
    named = folder.dtype_for(spec)
    return named if named in BYTES else "float32"


def _quantization(folder: ModelFolder) -> str | None:
    for config in (folder.config, folder.text_config):
        found = config.get("quantization_config")
        if isinstance(found, dict):
            return str(found.get("quant_method") or "of a kind that the config does not name")
    return None
