"""``vlmhb generate``: one question, one answer, printed as it is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from vlmhb.cli.app import ExitCode
from vlmhb.cli.options import SAMPLING_NAMES, load_fields, model_options, print_json, sampling_options


@click.command("generate", short_help="Ask a model one question.")
@click.argument("question")
@click.option("--model", "-m", required=True, help="Model folder, hub id, or a model that a plugin ships.")
@click.option("--backend", "-b", help="The engine. [default: the only one installed]")
@click.option("--image", "-i", "images", multiple=True, type=click.Path(path_type=Path), help="Image; repeatable.")
@click.option("--system", help="System prompt.")
@click.option("--stop", multiple=True, help="Text that ends the answer; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as JSON.")
@sampling_options
@model_options
def command(
    question: str,
    model: str,
    backend: str | None,
    images: tuple[Path, ...],
    system: str | None,
    stop: tuple[str, ...],
    as_json: bool,
    options: tuple[str, ...],
    **sampling: Any,
) -> None:
    """Ask a model one QUESTION about no, one or several images.

    \b
    Example:
      vlmhb generate -m tiny-qwen2-vl -b hf -i page.png "Какая сумма?"
      vlmhb generate -m ./model -b hf -o dtype=float32 --json "Hello"
    """
    from vlmhb.api import only_backend, open_model
    from vlmhb.contract.calls import image_input, sampling_from
    from vlmhb.contract.model import GenerationControl
    from vlmhb.contract.request import GenerationRequest
    from vlmhb.engines import Engines

    registry = Engines()
    name = backend or only_backend(registry)
    fields = load_fields(registry.backend_info(name), options)
    fields.setdefault("max_images", max(1, len(images)))
    params = sampling_from({**{name: sampling[name] for name in SAMPLING_NAMES}, "stop": stop})
    request = GenerationRequest.ask("0", question, map(image_input, images), system=system, sampling=params)
    printed: list[str] = []

    def show(_: str, text: str) -> None:
        printed.append(text)
        click.echo(text, nl=False)

    with open_model(registry, name, model, **fields) as loaded:
        results = list(loaded.generate_requests([request], GenerationControl(None if as_json else show)))
    result = results[0]
    if as_json:
        print_json(result)
    elif result.failure is None:
        rest = result.text.removeprefix("".join(printed))
        click.echo(rest)
    if result.failure is not None:
        click.echo(f"Error: {result.failure.message}", err=True)
        raise SystemExit(ExitCode.SOME_ROWS_FAILED)
    for note in result.notes:
        click.echo(f"Note: {note}", err=True)
