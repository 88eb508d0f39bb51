"""What can be said about a model from its processor and configs alone: the common half of ``vlmhb_check_model``."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from vlmhb.contract.check import ModelFacts, Support, Verdict
from vlmhb.contract.model import ModelSpec
from vlmhb.contract.request import GenerationRequest, ImageInput
from vlmhb.prompting.folder import PROCESSOR_FILES, ModelFolder

if TYPE_CHECKING:
    from vlmhb.prompting.builder import PromptBuilder

PAGE = (2480, 3508)
"""Pixels of a page of A4 (210 x 297 mm) at 300 dpi: width, height."""

_ABSENT = (
    re.compile(r"No module named ['\"]?([\w.]+)"),
    re.compile(r"packages that were not found in your environment: ([\w, .-]+?)[.\s]*(?:Run|$)"),
    re.compile(r"pip install (?:-U |--upgrade )?['\"`]?([\w.-]+)"),
    re.compile(r"requires the (?:following )?(?:library|package)s?:? [`'\"]?([\w.-]+)"),
)
"""How transformers, its processors and Python say that a package is absent."""
_UNKNOWN = re.compile(
    r"does not (?:know|recognize) th(?:e|is) architecture|not supported for now|Unrecognized (?:configuration|model)"
    r"|no code of its own|Cannot find model module"
)
"""How transformers, vLLM and SGLang say that they have no class for a model."""
_LONGEST = 400

NOT_TRIED = "its classes need values to be made, so it was not tried whether they fit the weights."
"""A note for models of which :func:`needs_values` holds."""


class Obstacle(NamedTuple):
    """Why a model does not load as asked."""

    verdict: Verdict
    reason: str
    advice: str = ""


def page_tokens(builder: PromptBuilder) -> int | None:
    """Tokens that a white page of the size :data:`PAGE` adds to a prompt, by really preparing and encoding one.

    Returns:
        None for a model without images.

    Raises:
        RequestError: the model's processor does not take such a page.
    """
    if not builder.takes_images:
        return None
    from PIL import Image

    page = io.BytesIO()
    Image.new("RGB", PAGE, "white").save(page, "BMP")

    def length(*images: ImageInput) -> int:
        prepared = builder.prepare(GenerationRequest.ask("page", "What is this?", images))
        return int(builder.encode([prepared])["input_ids"].shape[1])

    image = ImageInput(data=page.getvalue())
    if builder.family.min_images:  # there is no prompt without it to compare with
        return length(image) - len(builder.prepare(GenerationRequest.ask("page", "What is this?", [image])).token_ids)
    return length(image) - length()


def model_facts(builder: PromptBuilder, config: Any, parameters: int | None = None) -> tuple[ModelFacts, list[str]]:
    """What is known about a model, and notes about it, one sentence each.

    Args:
        builder: the model's prompts.
        config: its config as ``transformers.AutoConfig`` gives it.
        parameters: their number, where it was counted.
    """
    notes = list(builder.notes)
    if not builder.has_template:
        notes.append("the model has no chat template; messages are joined as plain text, as for a base model.")
    if not getattr(builder.tokenizer, "is_fast", True):
        notes.append("the model's tokenizer has no fast version; preparing prompts is slow.")
    tokens = None
    try:
        tokens = page_tokens(builder)
    except Exception as error:  # noqa: BLE001 - a processor's own code runs in there, and may raise anything
        notes.append(f"a scan of A4 cannot be asked about: {error}")
    text_config = config.get_text_config(decoder=True).to_dict()
    known = {name: value for name, value in text_config.items() if _is_plain(value)}
    return ModelFacts(text_config=known, page_tokens=tokens, parameters=parameters), notes


def weight_shapes(folder: ModelFolder) -> Iterator[tuple[str, Any]]:
    """Names of a folder's weights with tensors of their shapes on the device ``meta``; only files' headers are read.

    Nothing, where the folder holds no such files or a part of them is missing.
    """
    import torch
    from safetensors import safe_open

    kinds = {"F64": torch.float64, "F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}
    files = [folder.path / name for name in folder.weight_files]
    if not all(file.is_file() and file.suffix == ".safetensors" for file in files):
        return
    for file in files:
        with safe_open(file, "pt") as weights:
            for name in weights.keys():  # noqa: SIM118 - it is no mapping
                part = weights.get_slice(name)
                kind = kinds.get(part.get_dtype(), torch.int8)
                yield name, torch.empty(part.get_shape(), dtype=kind, device="meta")


def weight_names(folder: ModelFolder) -> set[str]:
    """Names of a folder's weights, from the headers of its files or else its index; none where it has neither."""
    return {name for name, _ in weight_shapes(folder)} or set(folder.weight_map)


def needs_values(error: BaseException) -> bool:
    """Whether an exception only says that a tensor on the device ``meta`` has no values: nothing about the model."""
    return any("meta tensor" in str(cause).lower() or "device meta" in str(cause).lower() for cause in _causes(error))


def obstacle(error: BaseException, reason: str, folder: ModelFolder, spec: ModelSpec) -> Obstacle:
    """What an exception of an engine or a processor means for a model, and what to do about it.

    Args:
        error: the exception.
        reason: its words, as the engine's plugin makes them readable.
        folder: the model's folder.
        spec: the model as asked.
    """
    found = (rule(error, folder, spec) for rule in _RULES)
    known = next((item for item in found if item), None)
    advice = "Another version of the engine may know it, or another engine." if _UNKNOWN.search(reason) else ""
    return known or Obstacle("refused", shortened(reason), advice)


def support_by_trying(
    implementation: Literal["native", "transformers"],
    asked: ModelSpec,
    folder: ModelFolder,
    notes: Iterable[str],
    attempt: Callable[[], Iterable[str]],
    words: Callable[[BaseException], str],
    silent: Mapping[tuple[str, str], str],
) -> Support:
    """The entry of an implementation, by doing what loading does short of reading weights.

    Args:
        implementation: whose entry it is.
        asked: the model, with this implementation.
        folder: its folder.
        notes: what is known about it already.
        attempt: does it; returns further notes.
        words: makes an exception of the engine readable.
        silent: model type and implementation -> what is computed differently without an error.
    """
    known = list(notes)
    try:
        known += attempt()
    except Exception as error:  # noqa: BLE001 - the model's own code runs in there and may raise anything
        if not needs_values(error):
            return refused(implementation, obstacle(error, words(error), folder, asked))
        known.append(NOT_TRIED)
    differently = silent.get((folder.model_type, implementation))
    known += [differently] if differently else []
    return Support(implementation=implementation, verdict="supported", notes=tuple(known))


def refused(implementation: Literal["native", "transformers"], stop: Obstacle) -> Support:
    """The entry of an implementation that an obstacle stops."""
    return Support(implementation=implementation, verdict=stop.verdict, reason=stop.reason, advice=stop.advice)


def shortened(text: str) -> str:
    """One line of at most 400 characters."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."


def _own_code(error: BaseException, folder: ModelFolder, spec: ModelSpec) -> Obstacle | None:
    if spec.trust_remote_code or not folder.own_code:
        return None
    return Obstacle(
        "condition",
        "the model needs Python code that its folder brings, which is not run unless you say so.",
        "Read the code, and set trust_remote_code to true if you trust it; then ask again.",
    )


def _absent_package(error: BaseException, folder: ModelFolder, spec: ModelSpec) -> Obstacle | None:
    for cause in _causes(error):
        text = " ".join(str(cause).split())
        for pattern in _ABSENT if isinstance(cause, ImportError) else _ABSENT[:1]:
            if match := pattern.search(text):
                name = match[1].strip(" .,")
                return Obstacle(
                    "condition", shortened(text), f"Install {name} in the engine's environment, if it is to be had."
                )
    return None


def _no_processor(error: BaseException, folder: ModelFolder, spec: ModelSpec) -> Obstacle | None:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    if folder.has_processor or not folder.expects_images or folder.model_type not in CONFIG_MAPPING:
        return None
    return Obstacle(
        "condition",
        f"the config has a part for images, and the folder holds no processor ({' or '.join(PROCESSOR_FILES)}).",
        "Fetch the missing files of the model.",
    )


_RULES: tuple[Callable[[BaseException, ModelFolder, ModelSpec], Obstacle | None], ...] = (
    _own_code,
    _absent_package,
    _no_processor,
)
"""Asked in this order; the first that knows the obstacle names it."""


def _causes(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    seen: BaseException | None = error
    while seen is not None and seen not in found:
        found.append(seen)
        seen = seen.__cause__ or seen.__context__
    return found


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(isinstance(item, str | int | float | bool | None) for item in value)
    return isinstance(value, str | int | float | bool | None)
