"""Which of the files that engines look for a model's folder holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from vlmhb.errors import ModelLoadError
from vlmhb.prompting.folder import PROCESSOR_FILES, ModelFolder

_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tekken.json", "spiece.model", "vocab.json", "vocab.txt")
_TEMPLATES = ("chat_template.jinja", "chat_template.json")


class FileGroup(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of file.

    Attributes:
        kind: what it is for.
        found: names of those that are there.
        missing: what is not there and is needed, in words; empty when nothing is.
    """

    kind: str
    found: tuple[str, ...] = ()
    missing: str = ""


def look(folder: ModelFolder) -> list[FileGroup]:
    """The groups of files of a model's folder, weights last."""
    return [_tokenizer(folder), *_processor(folder), _template(folder), *_code(folder), _weights(folder)]


def _tokenizer(folder: ModelFolder) -> FileGroup:
    found = _present(folder.path, (*_TOKENIZERS, "tokenizer_config.json"))
    missing = "" if any(name in _TOKENIZERS for name in found) else f"a tokenizer ({_TOKENIZERS[0]} or another kind)"
    return FileGroup(kind="tokenizer", found=found, missing=missing)


def _processor(folder: ModelFolder) -> list[FileGroup]:
    if not folder.expects_images:
        return []
    found = _present(folder.path, PROCESSOR_FILES)
    return [FileGroup(kind="processor", found=found, missing="" if found else " or ".join(PROCESSOR_FILES))]


def _template(folder: ModelFolder) -> FileGroup:
    found = _present(folder.path, _TEMPLATES)
    for name in ("tokenizer_config.json", *PROCESSOR_FILES):
        if _json(folder.path / name).get("chat_template"):
            found = (*found, name)
    return FileGroup(kind="chat template", found=found, missing="" if found else "a chat template")


def _code(folder: ModelFolder) -> list[FileGroup]:
    """Python files that ``auto_map`` entries of the configs name (``modeling_x.XForCausalLM``)."""
    named: set[str] = set()
    for name in ("config.json", "tokenizer_config.json", *PROCESSOR_FILES):
        for value in _json(folder.path / name).get("auto_map", {}).values():
            for reference in value if isinstance(value, list) else [value]:
                if isinstance(reference, str) and "--" not in reference:  # else it lies in another repository
                    named.add(reference.rpartition(".")[0] + ".py")
    if not named:
        return []
    absent = sorted(name for name in named if not (folder.path / name).is_file())
    return [FileGroup(kind="own code", found=tuple(sorted(named - set(absent))), missing=", ".join(absent))]


def _weights(folder: ModelFolder) -> FileGroup:
    named = folder.weight_files
    absent = [name for name in named if not (folder.path / name).is_file()]
    found = tuple(name for name in named if name not in absent)
    if not named:
        return FileGroup(kind="weights", missing="weights (model.safetensors)")
    listed = ", ".join(absent[:3]) + (f" and {len(absent) - 3} more" if len(absent) > 3 else "")
    return FileGroup(kind="weights", found=found, missing=listed)


def _present(path: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if (path / name).is_file())


def _json(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelLoadError(f"{file} cannot be read: {error}") from error
    return value if isinstance(value, dict) else {}
