"""``vlmhb generate``: one question, one answer, printed as it is made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vlmhb.cli.app import ExitCode
from vlmhb.cli.options import SAMPLING_NAMES, load_fields, model_options, print_json, sampling_options

if TYPE_CHECKING:
    from vlmhb.contract.backend import BackendInfo


@click.command("generate", short_help="Ask a model one question.")
@click.argument("question")
@click.option("--model", "-m", required=True, help="Model folder, hub id, or a model that a plugin ships.")
@click.option("--backend", "-b", help="The engine. [default: the only one installed]")
@click.option("--image", "-i", "images", multiple=True, type=click.Path(path_type=Path), help="Image; repeatable.")
@click.option("--system", help="System prompt.")
@click.option("--stop", multiple=True, help="Text that ends the answer; repeatable.")
@click.option(
    "--json-schema",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="JSON Schema that the answer must follow.",
)
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
    json_schema: Path | None,
    as_json: bool,
    options: tuple[str, ...],
    **sampling: Any,
) -> None:
    """Ask a model one QUESTION about no, one or several images.

    \b
    Example:
      vlmhb generate -m vlmhb-reader -b hf -i page.png "Какая итоговая сумма?"
      vlmhb generate -m ./model -b hf -o dtype=float32 --json "Hello"
    """
    from vlmhb.api import only_backend, open_model
    from vlmhb.contract.calls import image_input, sampling_from
    from vlmhb.contract.model import GenerationControl
    from vlmhb.contract.request import GenerationRequest
    from vlmhb.engines import Engines

    registry = Engines()
    name = backend or only_backend(registry)
    info = registry.backend_info(name)
    schema = _schema(json_schema, info) if json_schema else None
    fields = load_fields(info, options)
    fields.setdefault("max_images", max(1, len(images)))
    params = sampling_from({**{name: sampling[name] for name in SAMPLING_NAMES}, "stop": stop})
    pictures = map(image_input, images)
    request = GenerationRequest.ask("0", question, pictures, system=system, sampling=params, json_schema=schema)
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


def _schema(file: Path, info: BackendInfo) -> dict[str, Any]:
    """The JSON Schema in a file, for an engine that can hold an answer to one."""
    from vlmhb.data.schemas import read_schema
    from vlmhb.errors import ConfigError

    if not info.capabilities.structured_output:
        raise ConfigError(f"--json-schema: {info.name} cannot hold an answer to a JSON schema; see: vlmhb backends")
    try:
        return read_schema(file.read_text(encoding="utf-8-sig"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--json-schema: {file} cannot be read: {error}") from error
