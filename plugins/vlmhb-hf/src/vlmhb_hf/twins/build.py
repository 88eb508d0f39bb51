"""From a folder's config to the folder of its twin."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from transformers import AutoProcessor, AutoTokenizer
from vlmhb import GenerationRequest, ImageInput, ModelSpec, Twin
from vlmhb.errors import ModelLoadError, RequestError, VlmhbError
from vlmhb.prompting import ModelFolder, PromptBuilder, open_model_folder, stop_token_ids

from vlmhb_hf.loading import LOAD_ERRORS, auto_class, default_attention, first_lines, read_config
from vlmhb_hf.twins import tokens
from vlmhb_hf.twins.family import Family, family_of
from vlmhb_hf.twins.shrink import shrink
from vlmhb_hf.twins.weights import draw, save

CONTEXT = 1024
"""Tokens of the context of a twin whose tokenizer is generated."""
MOST_PARAMETERS = 400_000_000
"""What is larger than this after shrinking is no twin: 1.6 GB in float32. A vocabulary of 250,000 takes 64 million."""
_LEFT_OUT = (".safetensors", ".bin", ".pth", ".pt", ".gguf", ".onnx", ".h5", ".msgpack", ".index.json")
_CONFIGS = ("config.json", "generation_config.json")
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tekken.json", "spiece.model", "vocab.json", "vocab.txt")
_MOST_IMAGES = 2


def make_twin(spec: ModelSpec, out: Path) -> Twin:
    """Write the twin of a folder's architecture; the same each time.

    Args:
        spec: the folder; its config is enough. Code from it runs only when the spec allows it.
        out: the twin's folder, made if it is not there.

    Raises:
        ModelLoadError: the architecture is not known or cannot be made small; the message says why.
    """
    folder = open_model_folder(spec)
    out.mkdir(parents=True, exist_ok=True)
    _copy_small_files(folder.path, out)
    folder = _with_code(folder, spec, out)
    config = read_config(folder, spec)
    family = family_of(config.to_dict())
    try:
        content = _small(config, family)
        notes = _ready_text(folder, spec, family, content, out)
        _write_model(type(config).from_dict(content), folder, spec, family, out)
    except LOAD_ERRORS as error:
        raise ModelLoadError(
            f"no twin of {folder.path.name} could be made: {type(error).__name__}: {first_lines(error)}"
        ) from error
    counts = _image_counts(out, spec)
    parameters = _parameters(out)
    return Twin(path=str(out), image_counts=counts, parameters=parameters, notes=tuple(notes))


def _copy_small_files(source: Path, out: Path) -> None:
    """Tokenizer, processor, chat template and code; no weights, no configs of the model."""
    for file in source.iterdir():
        if file.is_file() and file.name not in _CONFIGS and not file.name.endswith(_LEFT_OUT):
            shutil.copyfile(file, out / file.name)


def _with_code(folder: ModelFolder, spec: ModelSpec, out: Path) -> ModelFolder:
    """The folder as it is, or, where transformers has no classes for it and it brings none, with those of its family.

    Raises:
        ModelLoadError: it needs such code, and the spec does not allow to run any.
    """
    family = family_of(folder.config)
    if not family.code or "auto_map" in folder.config:
        return folder
    if not spec.trust_remote_code:
        raise ModelLoadError(
            f"the installed transformers does not know the architecture {folder.model_type!r}; it runs from a folder "
            "that brings its own Python code, when trust_remote_code is true."
        )
    for file in (Path(__file__).parent / "code" / family.code).glob("[!_]*.py"):
        shutil.copyfile(file, out / file.name)
    content = {**folder.config, "auto_map": dict(family.auto_map)}
    (out / "config.json").write_text(json.dumps(content), encoding="utf-8")
    return open_model_folder(ModelSpec(model_path=str(out)))


def _small(config: Any, family: Family) -> dict[str, Any]:
    content: dict[str, Any] = config.to_dict()
    content.pop("quantization_config", None)
    content["dtype"] = "float32"
    shrink(content)
    family.shrink(content)
    return content


def _ready_text(folder: ModelFolder, spec: ModelSpec, family: Family, content: dict[str, Any], out: Path) -> list[str]:
    """See to tokenizer and processor; fits the config to generated ones, and returns what was generated, in words."""
    notes = []
    own_tokenizer = any((folder.path / name).is_file() for name in _TOKENIZERS)
    wants_images = any(isinstance(content.get(name), dict) for name in ("vision_config", "img_processor", "encoder"))
    if own_tokenizer:
        tokenizer = AutoTokenizer.from_pretrained(str(folder.path), trust_remote_code=spec.trust_remote_code)
    else:
        tokenizer = tokens.generated(family.tokens, dict(family.named), family.plain)
        if family.chat:
            tokenizer.chat_template = tokens.template(family.image_text, family.opening)
        notes.append("its tokenizer and chat template are generated." if family.chat else "its tokenizer is generated.")
        _fit_ids(content, family, tokenizer)
    if wants_images and not folder.has_processor:
        family.small_pictures(content)
        processor = family.processor(tokenizer, content)
        processor.save_pretrained(out)
        tokenizer = processor.tokenizer
        notes.append("its processor is generated, for small pictures.")
    elif wants_images:
        AutoProcessor.from_pretrained(str(folder.path), trust_remote_code=spec.trust_remote_code)
    if not own_tokenizer:
        if not wants_images:
            tokenizer.save_pretrained(out)
        _fit_vocabulary(content, len(tokenizer))
    return notes


def _fit_ids(content: dict[str, Any], family: Family, tokenizer: Any) -> None:
    """Put the generated tokenizer's ids where the config names ids."""
    end, start = tokenizer.convert_tokens_to_ids([tokens.END_OF_TURN, tokens.END_OF_TEXT])
    for part in _language_parts(content):
        part.update(eos_token_id=end, pad_token_id=start, bos_token_id=start)
        for name in ("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length", "n_ctx"):
            if isinstance(part.get(name), int):
                part[name] = CONTEXT
    for entry, text in family.ids.items():
        *path, last = entry.split(".")
        part = content
        for name in path:
            part = part[name]
        part[last] = tokenizer.convert_tokens_to_ids(text)


def _fit_vocabulary(content: dict[str, Any], count: int) -> None:
    for part in _language_parts(content):
        if "vocab_size" in part:
            part["vocab_size"] = -(-(count + 1) // 64) * 64


def _language_parts(content: dict[str, Any]) -> list[dict[str, Any]]:
    names = ("text_config", "llm_config", "decoder")
    nested = [content[name] for name in names if isinstance(content.get(name), dict)]
    return [content, *nested]


def _write_model(config: Any, folder: ModelFolder, spec: ModelSpec, family: Family, out: Path) -> None:
    takes_images = any((out / name).is_file() for name in ("preprocessor_config.json", "processor_config.json"))
    auto = auto_class(config, spec, takes_images=takes_images)
    options = {"attn_implementation": default_attention(auto, config), "trust_remote_code": spec.trust_remote_code}
    with torch.device("meta"):
        size = sum(parameter.numel() for parameter in auto.from_config(config, **options).parameters())
    if size > MOST_PARAMETERS:
        raise ModelLoadError(
            f"the twin of {folder.path.name} would have {size:,} parameters: its architecture has sizes that the rules "
            "for shrinking do not know."
        )
    torch.manual_seed(family.seed)
    model = auto.from_config(config, dtype=torch.float32, **options).eval()
    tokenizer = AutoTokenizer.from_pretrained(str(out), trust_remote_code=spec.trust_remote_code)
    ends = set(stop_token_ids(folder, tokenizer)) if folder.generation_config else {tokenizer.eos_token_id}
    rows = range(len(tokenizer), model.config.get_text_config(decoder=True).vocab_size)
    draw(model, family, [*(set(tokenizer.all_special_ids) - ends), *rows])
    save(model, out)
    ids = {
        "eos_token_id": sorted(end for end in ends if end is not None),
        "pad_token_id": tokenizer.pad_token_id,
        "decoder_start_token_id": getattr(getattr(model, "generation_config", None), "decoder_start_token_id", None),
    }
    (out / "generation_config.json").write_text(
        json.dumps({name: value for name, value in ids.items() if value not in (None, [])}), encoding="utf-8"
    )


def _image_counts(out: Path, spec: ModelSpec) -> tuple[int, ...]:
    """How many images a prompt of the twin may have, of 0, 1 and 2, found by making such prompts.

    Raises:
        ModelLoadError: no prompt can be made at all.
    """
    from PIL import Image

    builder = PromptBuilder(ModelSpec(model_path=str(out), trust_remote_code=spec.trust_remote_code))
    picture = ImageInput(data=_png(Image.new("RGB", (160, 120), "white")))
    counts, problem = [], ""
    for count in range(_MOST_IMAGES + 1):
        try:
            builder.encode([builder.prepare(GenerationRequest.ask("try", "What is this?", [picture] * count))])
            counts.append(count)
        except (RequestError, VlmhbError) as error:
            problem = str(error)
    if not counts:
        raise ModelLoadError(f"no prompt can be made for the twin: {problem}")
    return tuple(counts)


def _png(image: Any) -> bytes:
    import io

    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def _parameters(out: Path) -> int:
    from safetensors import safe_open

    total = 0
    for file in out.glob("*.safetensors"):
        with safe_open(file, "pt") as weights:
            for name in weights.keys():  # noqa: SIM118 - it is no mapping
                shape = weights.get_slice(name).get_shape()
                total += int(torch.Size(shape).numel())
    return total
