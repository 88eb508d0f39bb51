"""What a model's folder says about itself, read as JSON: no engine and no model code is imported."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec

from vlmhb.contract.model import ModelSpec, missing_model
from vlmhb.errors import MissingPackageError, ModelLoadError

_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
_PATH = re.compile(r"\.{1,2}/|[/~]|.*\\")
"""What can only be meant as a path: no hub id begins so, or holds a backslash."""
_UNUSED_FILES = ["original/*", "*.pth", "*.onnx", "*.gguf", "*.msgpack", "*.h5", "*.tflite"]

PROCESSOR_FILES = ("preprocessor_config.json", "processor_config.json")
_INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_TOKENIZERS = ("tokenizer_config.json",)
_VISION_PARTS = ("vision_config", "visual", "vision_tower", "mm_vision_tower", "vit_config", "img_processor")

_NEUTRAL: dict[str, Any] = {
    "do_sample": False,
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "typical_p": 1.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
    "repetition_penalty": 1.0,
    "encoder_repetition_penalty": 1.0,
    "no_repeat_ngram_size": 0,
    "length_penalty": 1.0,
    "num_beams": 1,
    "guidance_scale": 1.0,
    "max_length": None,
    "max_new_tokens": None,
    "min_length": 0,
    "min_new_tokens": None,
    "bad_words_ids": None,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
    "forced_bos_token_id": None,
    "forced_eos_token_id": None,
    "stop_strings": None,
}
"""Settings of a generation_config.json that change which tokens come out, and their values without effect."""


class ModelFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A model's folder on disk.

    Attributes:
        path: the folder.
        config: its ``config.json``.
        generation_config: its ``generation_config.json``, empty when there is none.
    """

    path: Path
    config: dict[str, Any]
    generation_config: dict[str, Any]

    @property
    def model_type(self) -> str:
        """The architecture's name in ``transformers``, empty when the config does not say."""
        return str(self.config.get("model_type", ""))

    @property
    def text_config(self) -> dict[str, Any]:
        """The language model's part of the config: a nested one where there is one, else the whole."""
        for name in ("text_config", "llm_config", "language_config", "decoder"):
            if isinstance(self.config.get(name), dict):
                nested: dict[str, Any] = self.config[name]
                return nested
        return self.config

    def dtype_for(self, spec: ModelSpec) -> str:
        """The dtype to load: the spec's, or the one in the model's config, for engines whose own ``auto`` differs.

        Such an ``auto`` halves a float32 model, say; it is left to decide only where the config names no dtype.
        """
        if spec.dtype != "auto":
            return spec.dtype
        for config in (self.config, self.text_config):
            named = config.get("dtype") or config.get("torch_dtype")
            if named:
                return str(named).removeprefix("torch.")
        return "auto"

    @property
    def has_processor(self) -> bool:
        """Whether the folder holds a processor for images, and so is more than a text model."""
        return any((self.path / name).is_file() for name in PROCESSOR_FILES)

    @property
    def processor_class(self) -> str:
        """The name of the processor's class, empty where no file says it."""
        files = (_json_of(self.path / name) for name in (*PROCESSOR_FILES, *_TOKENIZERS))
        return next((str(file["processor_class"]) for file in files if file.get("processor_class")), "")

    @property
    def expects_images(self) -> bool:
        """Whether the config has a part for images, or the folder a processor for them."""
        return self.has_processor or any(self.config.get(name) for name in _VISION_PARTS)

    @property
    def weight_map(self) -> dict[str, str]:
        """Name of each weight -> its file, as the folder's index says; empty where it has no index."""
        maps = (_json_of(self.path / name).get("weight_map") for name in _INDEXES)
        return next((dict(found) for found in maps if found), {})

    @property
    def weight_files(self) -> list[str]:
        """Names of the weight files: those that the folder's index names, be they there or not, else those it holds."""
        if named := self.weight_map:
            return sorted(set(named.values()))
        if (self.path / "model.safetensors").is_file():
            return ["model.safetensors"]
        found = sorted(file.name for file in self.path.glob("*.safetensors"))
        return found or sorted(file.name for file in self.path.glob("pytorch_model*.bin"))

    @property
    def own_code(self) -> bool:
        """Whether the model, its processor or its tokenizer is made by Python code that the folder brings or names."""
        return any("auto_map" in _json_of(self.path / name) for name in ("config.json", *PROCESSOR_FILES, *_TOKENIZERS))


def open_model_folder(spec: ModelSpec) -> ModelFolder:
    """Find a model's folder, fetching it from the hub when the path is a hub id, and read its configs.

    Raises:
        ModelLoadError: there is no such folder or hub model, or its configs cannot be read.
    """
    path = Path(spec.model_path).expanduser()
    if not path.exists():
        path = _fetched(spec)
    if not path.is_dir():
        raise ModelLoadError(f"{path} is a file; a model is a folder with a config.json.")
    if not (path / "config.json").is_file():
        raise ModelLoadError(f"{path} holds no config.json, so it is no model folder of the Hugging Face layout.")
    return ModelFolder(path=path, config=_read_json(path / "config.json"), generation_config=_generation_config(path))


def sampling_defaults_of(model_path: str | Path) -> dict[str, Any]:
    """What the folder's ``generation_config.json`` would do to the choice of tokens, and vlmhb leaves out.

    Returns:
        Its settings that have an effect, for example ``{"temperature": 0.01, "top_k": 1}``; empty when there are none.
    """
    config = _generation_config(Path(model_path))
    return {name: config[name] for name in _NEUTRAL if config.get(name) not in (None, _NEUTRAL[name])}


def stop_token_ids(folder: ModelFolder, tokenizer: Any) -> tuple[int, ...]:
    """Every token id that ends an answer: those of the generation config, the config and the tokenizer together.

    Checkpoints disagree about where the id is kept (a chat model's ``<|im_end|>`` is often in one of the three only),
    and engines read different ones; the union is the same on every engine.
    """
    named = [
        folder.generation_config.get("eos_token_id"),
        folder.config.get("eos_token_id"),
        folder.text_config.get("eos_token_id"),
        getattr(tokenizer, "eos_token_id", None),
    ]
    ids: set[int] = set()
    for value in named:
        ids.update(value if isinstance(value, list) else [] if value is None else [value])
    return tuple(sorted(ids))


def _fetched(spec: ModelSpec) -> Path:
    if _PATH.match(spec.model_path):
        raise ModelLoadError(f"there is no model folder {spec.model_path}.")
    if not _HUB_ID.fullmatch(spec.model_path):
        raise missing_model(spec.model_path)
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
    except ImportError as error:
        raise MissingPackageError(
            f"{spec.model_path} is no folder; to fetch it from the hub: pip install huggingface_hub"
        ) from error
    try:
        return Path(snapshot_download(spec.model_path, revision=spec.revision, ignore_patterns=_UNUSED_FILES))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        advice = "" if isinstance(error, HFValidationError) else " If there is no network here, name a model folder."
        raise ModelLoadError(
            f"there is no model folder {spec.model_path}, and it could not be fetched from the hub: "
            f"{reason.removeprefix('Got: ').rstrip('.')}.{advice}"
        ) from error


def _generation_config(path: Path) -> dict[str, Any]:
    return _json_of(path / "generation_config.json")


def _json_of(file: Path) -> dict[str, Any]:
    return _read_json(file) if file.is_file() else {}


def _read_json(file: Path) -> dict[str, Any]:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelLoadError(f"{file} cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise ModelLoadError(f"{file} must hold a JSON object, not {type(value).__name__}.")
    return value
