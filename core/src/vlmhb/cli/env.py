"""``vlmhb env``: the environments that hold the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vlmhb.environments.manage import Environment

JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


@click.group("env", short_help="Make and manage the engines' environments.")
def command() -> None:
    """Make and manage environments, one for each engine.

    Engines pin different versions of the same packages, so each gets an environment of its own; vlmhb starts the
    engine from there. They lie under the user's data folder; $VLMHB_HOME moves it.

    \b
    Example:
      vlmhb env create vllm
      vlmhb env create my-engine --plugin ./my-plugin --device cpu
      vlmhb env list
    """


@command.command("create")
@click.argument("engine")
@click.option("--device", default="auto", show_default=True, metavar="auto|cpu|cuda", help="What it is made for.")
@click.option("--python", metavar="X.Y", help="Python version. [default: this one, if the engine works with it]")
@click.option("--plugin", metavar="PATH|REQUIREMENT", help="The engine's plugin; vlmhb's own engines need none.")
@click.option("--fresh", is_flag=True, help="Make it again even when it is in order.")
@click.option("--ignore-disk", is_flag=True, help="Go on when the disk seems to be too small.")
def create_command(
    engine: str, device: str, python: str | None, plugin: str | None, fresh: bool, ignore_disk: bool
) -> None:
    """Make the environment of an engine, or do nothing when it is there and in order.

    It is made aside and gets its name when the engine could really be imported. The last line is its folder.

    \b
    Example:
      vlmhb env create sglang --device cpu
    """
    from vlmhb.environments.create import create

    path = create(
        engine,
        device=device,
        python=python,
        plugin=plugin,
        fresh=fresh,
        check_disk=not ignore_disk,
        progress=_say,
    )
    click.echo(path)


@command.command("list")
@JSON
def list_command(as_json: bool) -> None:
    """List all environments, managed and registered."""
    from vlmhb.environments.manage import list_environments

    _show(list_environments(), as_json)


@command.command("remove")
@click.argument("name")
def remove_command(name: str) -> None:
    """Delete a managed environment; of a registered one, only the entry.

    \b
    Example:
      vlmhb env remove vllm-cpu
    """
    from vlmhb.environments.manage import remove

    remove(name, _say)


@command.command("doctor")
@click.argument("name", required=False)
@JSON
@click.pass_context
def doctor_command(ctx: click.Context, name: str | None, as_json: bool) -> None:
    """Check environments by really starting each engine's Python and importing the engine.

    Exit code 1 when one of them cannot be used.
    """
    from vlmhb.environments.manage import doctor

    found = doctor(name, _say)
    _show(found, as_json)
    if any(environment.problem for environment in found):
        ctx.exit(1)


@command.command("add")
@click.argument("path", type=click.Path())
@JSON
def add_command(path: str, as_json: bool) -> None:
    """Register an environment that you made yourself, with vlmhb and a plugin in it.

    \b
    Example:
      python -m venv ~/my-vllm
      ~/my-vllm/bin/pip install ./core ./plugins/vlmhb-vllm
      vlmhb env add ~/my-vllm
    """
    from vlmhb.environments.manage import add

    _show([add(path)], as_json)


def _say(sentence: str) -> None:
    click.echo(sentence, err=True)


def _show(environments: Sequence[Environment], as_json: bool) -> None:
    from vlmhb.cli.options import print_json

    if as_json:
        print_json({"environments": environments})
        return
    if not environments:
        click.echo("There are no environments. Make one, for example: vlmhb env create vllm")
    for environment in environments:
        engines = ", ".join(f"{name} {version}" for name, version in environment.engines.items())
        facts = [environment.kind, f"for {', '.join(environment.backends)}"]
        facts += [engines] if engines else []
        facts += [f"Python {environment.python}"] if environment.python else []
        click.echo(f"{environment.name}  ({'; '.join(facts)})")
        if environment.path != environment.name:
            click.echo(f"    {environment.path}")
        click.echo(f"    {environment.problem}" if environment.problem else "    in order")
