"""Ask an engine about a model, in its environment; remember what it said."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import msgspec

from vlmhb import __version__
from vlmhb.contract.check import ModelCheck
from vlmhb.contract.model import ModelSpec
from vlmhb.engines import Engines
from vlmhb.environments import places, record, uv
from vlmhb.environments.manage import find_environment
from vlmhb.errors import BackendNotFoundError, PluginError
from vlmhb.whole import written_whole
from vlmhb.worker.launch import Launch

_READ_WHOLE = 1 << 26
"""Bytes up to which a file's contents count for whether a model has changed; of larger ones the size does."""
_WEIGHTS = (".safetensors", ".bin", ".pth", ".pt", ".gguf", ".onnx", ".h5", ".msgpack")


def ask(
    engines: Engines, backend: str, spec: ModelSpec, *, fresh: bool = False, say: Callable[[str], None] = lambda _: None
) -> ModelCheck:
    """What a backend says about a model.

    The answer is kept under the user's data folder until the engine, its environment, the spec or one of the folder's
    files changes.

    Args:
        engines: knows where the engine is.
        backend: its name.
        spec: the model, a folder on disk.
        fresh: ask again even when an answer is kept.
        say: told in a sentence when the engine is started.

    Raises:
        VlmhbError: it could not be asked; the message says why.
    """
    launch = _launch(engines, backend)
    kept = places.home() / "doctor" / f"{_key(launch, backend, engines, spec)}.json"
    known = None if fresh else _read(kept)
    if known is not None:
        return known
    say(f"asking {backend}; its answer is kept for the next time")
    asked = msgspec.json.encode(spec).decode()
    outcome = uv.ask_inside(Path(launch.python), "check", backend, asked, env=launch.environ())
    if outcome.check is None:
        raise PluginError(f"the plugin of {backend} cannot say whether a model would load.")
    kept.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(kept) as beside:
        beside.write_bytes(msgspec.json.encode(outcome.check))
    return outcome.check


def _launch(engines: Engines, backend: str) -> Launch:
    """Where the engine is; unlike for a run, an outdated environment is not made again but refused."""
    if engines.is_here(backend):
        if problem := engines.backend_problem(backend):
            raise PluginError(problem)
        return Launch.here()
    found = find_environment(backend)
    if found is None:
        raise BackendNotFoundError(f"there is no backend {backend}.")
    return found


def _key(launch: Launch, backend: str, engines: Engines, spec: ModelSpec) -> str:
    digest = hashlib.sha256()
    environment = Path(launch.python).parent.parent
    parts: list[object] = [__version__, backend, engines.backend_info(backend), launch, spec]
    digest.update(msgspec.json.encode([*parts, record.packages_in(environment)]))
    for file in sorted(Path(spec.model_path).rglob("*")):
        if file.is_file():
            size = file.stat().st_size
            digest.update(f"\0{file.relative_to(spec.model_path)}\0{size}\0".encode())
            if file.suffix not in _WEIGHTS and size <= _READ_WHOLE:
                digest.update(file.read_bytes())
    return digest.hexdigest()


def _read(kept: Path) -> ModelCheck | None:
    try:
        return msgspec.json.decode(kept.read_bytes(), type=ModelCheck)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):  # not there, or of another version
        return None
