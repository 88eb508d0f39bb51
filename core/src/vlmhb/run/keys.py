"""What an answer is stored under: the content of what was asked, so that nothing stale is ever reused."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from vlmhb.contract.backend import BackendInfo
from vlmhb.contract.model import ModelSpec
from vlmhb.contract.request import SamplingParams

_WHOLE_FILE = 1 << 20
_BLOCK = 1 << 16
_BLOCKS = 32


def digest_file(path: Path) -> str:
    """SHA-256 of a file's bytes, as hexadecimal text."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def model_fingerprint(model_path: str) -> str:
    """Identify a model by what is in its folder, or a hub id by its name.

    Files up to 1 MiB count whole; of larger ones the size and 32 blocks of 64 KiB spread over the file, which any
    further training or conversion changes. Times and the folder's own path do not count.
    """
    folder = Path(model_path)
    if not folder.is_dir():
        return f"name:{model_path}"
    total = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        relative = path.relative_to(folder)
        if any(part.startswith(".") or part == "__pycache__" for part in relative.parts):
            continue
        total.update(f"{relative.as_posix()}\0{path.stat().st_size}\0".encode())
        for block in _sample(path):
            total.update(block)
    return f"sha256:{total.hexdigest()}"


def _sample(path: Path) -> Iterable[bytes]:
    size = path.stat().st_size
    with path.open("rb") as file:
        if size <= _WHOLE_FILE:
            yield file.read()
            return
        for index in range(_BLOCKS):
            file.seek((size - _BLOCK) * index // (_BLOCKS - 1))
            yield file.read(_BLOCK)


def asker_key(backend: BackendInfo, spec: ModelSpec, sampling: SamplingParams, system_prompt: str | None) -> bytes:
    """Digest of everything that the questions of one job have in common: model, engine, how it decodes."""
    silent = {option.name for option in backend.options if not option.changes_answers}
    fields: dict[str, Any] = msgspec.to_builtins(spec)
    fields["model_path"] = model_fingerprint(spec.model_path)
    fields["options"] = {name: value for name, value in spec.options.items() if name not in silent}
    asked = {
        "backend": backend.name,
        "model": fields,
        "sampling": msgspec.to_builtins(sampling),
        "system": system_prompt,
    }
    return hashlib.sha256(msgspec.json.encode(asked, order="deterministic")).digest()


def page_key(asker: bytes, image_digests: Iterable[str]) -> bytes:
    """What the keys of all questions about the same images to one asker begin from.

    Args:
        asker: what :func:`asker_key` made.
        image_digests: digests of the image files, in order.
    """
    return b"%b%b\0" % (asker, "".join(image_digests).encode())


def question_key(page: bytes, prompt: str, json_schema: str = "") -> bytes:
    """Digest of one question: who is asked, about which pixels, with which words.

    Args:
        page: what :func:`page_key` made.
        prompt: the question as the model gets it.
        json_schema: the schema that the engine holds the answer to, as text; empty where it holds it to none.
    """
    key = hashlib.sha256(page + prompt.encode("utf-8", "surrogatepass")).digest()
    if json_schema:
        key = hashlib.sha256(key + json_schema.encode("utf-8", "surrogatepass")).digest()
    return key
