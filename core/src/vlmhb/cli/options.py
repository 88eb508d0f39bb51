"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from vlmhb.contract.request import DEFAULT_MAX_TOKENS

if TYPE_CHECKING:
    from vlmhb.contract.backend import BackendInfo
    from vlmhb.contract.model import ModelSpec
    from vlmhb.engines import Engines

F = TypeVar("F", bound=Callable[..., Any])

_SAMPLING = (
    click.option("--max-tokens", type=int, help=f"Most output tokens of an answer. [default: {DEFAULT_MAX_TOKENS}]"),
    click.option("--temperature", type=float, help="0 is greedy decoding. [default: 0]"),
    click.option("--top-p", type=float, help="Nucleus sampling, in (0, 1]. [default: 1]"),
    click.option("--seed", type=int, help="Seed of the draws when the temperature is above 0. [default: 0]"),
)
SAMPLING_NAMES = ("max_tokens", "temperature", "top_p", "seed")


def print_json(content: Any) -> None:
    """Print a result for programs."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(content), indent=1).decode())


def sampling_options(command: F) -> F:
    """Add the options of :class:`vlmhb.SamplingParams` to a command."""
    for option in reversed(_SAMPLING):
        command = option(command)
    return command


def model_options(command: F) -> F:
    """Add ``-o NAME=VALUE`` for model and engine options."""
    return click.option(
        "-o",
        "--option",
        "options",
        multiple=True,
        metavar="NAME=VALUE",
        help="Model or engine option, for example -o dtype=float32 -o batch_size=8 (see: vlmhb backends NAME).",
    )(command)


def split_pairs(pairs: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split ``NAME=VALUE`` texts into fields of :class:`vlmhb.ModelSpec` and engine options.

    Raises:
        ConfigError: a text is no pair, or the value is nothing of the field's type.
    """
    from vlmhb.config.cells import CellError, parse_options
    from vlmhb.config.columns import MODEL
    from vlmhb.errors import ConfigError, Fault

    model: dict[str, Any] = {}
    options: dict[str, Any] = {}
    faults: list[Fault] = []
    for pair in pairs:
        try:
            named = parse_options(pair) if pair.lstrip().startswith("{") else _one_option(pair)
            for name, value in named.items():
                if name in MODEL:
                    model[name] = MODEL[name](str(value))
                else:
                    options[name] = value
        except CellError as error:
            faults.append(Fault(message=str(error), file="option -o", value=pair, hint=error.hint))
    if faults:
        raise ConfigError(faults)
    return model, options


def _one_option(pair: str) -> dict[str, Any]:
    from vlmhb.config.cells import BareText, CellError

    name, equals, value = pair.partition("=")
    if not equals or not name.strip():
        raise CellError(f"{pair!r} is no NAME=VALUE.")
    return {name.strip(): BareText(value)}


def engine_names(text: str) -> list[str]:
    """The engines of a list such as ``hf,vllm:transformers``."""
    return [name.strip() for name in text.split(",") if name.strip()]


def engine_spec(
    registry: Engines, name: str, model: str, pairs: Sequence[str], **defaults: Any
) -> tuple[BackendInfo, ModelSpec]:
    """The backend that a name means, and what it is to load.

    Args:
        registry: the engines.
        name: a backend, or one with an implementation after a colon: ``vllm:transformers``.
        model: a folder, a hub id or a shipped model's name.
        pairs: ``NAME=VALUE`` texts.
        defaults: fields of the spec that the texts may change.

    Raises:
        ConfigError: as for :func:`load_fields`.
        BackendNotFoundError, PluginError: the backend cannot be used.
    """
    from vlmhb.contract.model import make_spec

    backend, _, implementation = name.partition(":")
    info = registry.backend_info(backend)
    fields = {**defaults, **load_fields(info, pairs)}
    if implementation:
        fields["model_impl"] = implementation
    return info, make_spec(info, registry.model_path(model), **fields)


def load_fields(backend: BackendInfo, pairs: Sequence[str]) -> dict[str, Any]:
    """The keyword arguments of ``vlmhb.load`` that ``NAME=VALUE`` texts mean for a backend.

    Raises:
        ConfigError: as for :func:`split_pairs`, and for a value that is nothing of the engine option's type.
    """
    from vlmhb.config.cells import CellError, fit_option, plain_value
    from vlmhb.errors import ConfigError

    known = {option.name: option for option in backend.options}
    model, options = split_pairs(pairs)
    try:
        fitted = {name: fit_option(known[name], value) for name, value in options.items() if name in known}
    except CellError as error:
        raise ConfigError(f"{error} {error.hint or ''}".strip()) from error
    return {**model, "options": {name: fitted.get(name, plain_value(value)) for name, value in options.items()}}
