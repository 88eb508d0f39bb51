"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from vlmhb.contract.request import DEFAULT_MAX_TOKENS

F = TypeVar("F", bound=Callable[..., Any])

_SAMPLING = (
    click.option("--max-tokens", type=int, help=f"Most output tokens of an answer. [default: {DEFAULT_MAX_TOKENS}]"),
    click.option("--temperature", type=float, help="0 is greedy decoding. [default: 0]"),
    click.option("--top-p", type=float, help="Nucleus sampling, in (0, 1]. [default: 1]"),
    click.option("--seed", type=int, help="Seed of the draws when the temperature is above 0. [default: 0]"),
)
SAMPLING_NAMES = ("max_tokens", "temperature", "top_p", "seed")


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
        help="Model or engine option, for example -o dtype=float32 -o batch_size=8 (see: vlmhb backends).",
    )(command)
