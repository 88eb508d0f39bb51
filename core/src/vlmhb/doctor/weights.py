"""How many numbers a model's weights are, from the headers of its files."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path

import msgspec

from vlmhb.errors import ModelLoadError
from vlmhb.prompting.folder import ModelFolder

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
"""Bytes of a number in each dtype that a model can be loaded in."""

_STORED = {"F64": 8, "F32": 4, "BF16": 2, "F16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "I64": 8, "I32": 4, "I16": 2, "I8": 1,
           "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1}  # fmt: skip
"""Dtypes of safetensors files and their bytes."""
_FLOATS = ("F64", "F32", "BF16", "F16")
_LONGEST_HEADER = 100_000_000
"""The format's own limit, in bytes."""


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """What the weights are.

    Attributes:
        numbers: how many of them are floating point numbers, and are converted to the dtype that is asked for.
        fixed_bytes: bytes of the others (quantized values, scales in 8 bits, indices), which stay as they are.
        stored: bytes by the dtype they are stored in.
        source: where this is known from, in words.
    """

    numbers: int
    fixed_bytes: int = 0
    stored: dict[str, int] = {}
    source: str = ""

    def bytes_in(self, dtype: str) -> int:
        """Bytes of the model loaded in a dtype: ``numbers`` times its size, and the fixed ones."""
        return self.numbers * BYTES[dtype] + self.fixed_bytes


def read_weights(folder: ModelFolder) -> Weights | None:
    """The weights of a folder, from the headers of its safetensors files; the values themselves are not read.

    A header is 8 bytes of length (little-endian) and as many bytes of JSON with the shape and dtype of each tensor
    (safetensors format, https://huggingface.co/docs/safetensors). Buffers that are stored are counted as well. Where a
    file is not there, the sum that the index states (``total_size``, in bytes) is taken.

    Returns:
        None when the folder says nothing about its weights.

    Raises:
        ModelLoadError: a file is damaged.
    """
    files = [folder.path / name for name in folder.weight_files if name.endswith(".safetensors")]
    if not files:
        return None
    if not all(file.is_file() for file in files):
        return _from_index(folder)
    stored: dict[str, int] = {}
    for file in files:
        for name, count in _header(file).items():
            stored[name] = stored.get(name, 0) + count * _STORED[name]
    numbers = sum(size // _STORED[name] for name, size in stored.items() if name in _FLOATS)
    fixed = sum(size for name, size in stored.items() if name not in _FLOATS)
    return Weights(numbers=numbers, fixed_bytes=fixed, stored=stored, source="the headers of the weight files")


def _from_index(folder: ModelFolder) -> Weights | None:
    index = json.loads((folder.path / "model.safetensors.index.json").read_text(encoding="utf-8"))
    metadata = index.get("metadata") or {}
    if isinstance(metadata.get("total_parameters"), int):
        return Weights(numbers=metadata["total_parameters"], source="the index of the weight files")
    dtype = str(folder.config.get("dtype") or folder.config.get("torch_dtype")).removeprefix("torch.")
    quantized = "quantization_config" in folder.config
    if not isinstance(metadata.get("total_size"), int) or dtype not in BYTES or quantized:
        return None
    return Weights(numbers=metadata["total_size"] // BYTES[dtype], source="the index of the weight files")


def _header(file: Path) -> dict[str, int]:
    """Dtype -> how many numbers of it a safetensors file holds."""
    try:
        with file.open("rb") as data:
            (length,) = struct.unpack("<Q", data.read(8))
            if length > _LONGEST_HEADER:
                raise ValueError(f"a header of {length} bytes")
            tensors = json.loads(data.read(length))
        counts: dict[str, int] = {}
        for name, tensor in tensors.items():
            if name != "__metadata__":
                counts[tensor["dtype"]] = counts.get(tensor["dtype"], 0) + math.prod(tensor["shape"])
        unknown = set(counts) - set(_STORED)
        if unknown:
            raise ValueError(f"numbers of the unknown kind {', '.join(sorted(unknown))}")
        return counts
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
        raise ModelLoadError(f"{file} is no whole safetensors file ({error}). Is the download complete?") from error
