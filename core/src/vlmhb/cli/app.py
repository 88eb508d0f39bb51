"""The ``vlmhb`` command: its subcommands, its exit codes, and how errors reach a person."""

from __future__ import annotations

import importlib
import os
import sys
from enum import IntEnum
from typing import Any, TextIO

import click

COMMANDS = (
    "run",
    "generate",
    "compare",
    "bench",
    "doctor",
    "backends",
    "env",
    "dataset",
    "score",
    "report",
    "init",
    "demo",
)


class ExitCode(IntEnum):
    """Exit codes of every command."""

    OK = 0
    SOME_ROWS_FAILED = 1
    """The command did its work, but some rows have no answer."""
    REFUSED = 2
    """The usage, the config or the data was refused, or the run could not go on; the message says why."""


class Commands(click.Group):
    """Finds a command in the module of its name, and turns vlmhb's errors into messages."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import a command's module."""
        if name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"vlmhb.cli.{name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest the nearest command for an unknown one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            if near:
                raise click.UsageError(f"No such command {args[0]!r}. Did you mean {near[0]}?", ctx) from error
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; an error becomes a message and exit code 2. Click ends quietly when nobody reads."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if ctx.params.get("debug"):
                raise
            _explain(error)
            ctx.exit(ExitCode.REFUSED)


def _explain(error: Exception) -> None:
    """Print what went wrong, for a person."""
    from vlmhb.errors import ConfigError, VlmhbError, printable

    def say(text: str) -> None:
        click.echo(printable(text), err=True)

    if isinstance(error, ConfigError) and len(error.faults) > 1:
        say(f"Error: {len(error.faults)} faults were found; nothing was run.")
        for fault in error.faults:
            say(f"  {fault}")
    elif isinstance(error, VlmhbError):
        say(f"Error: {error}")
    else:
        say(f"Error: {type(error).__name__}: {error}")
        say("This is a fault of vlmhb or of a plugin. 'vlmhb --debug ...' shows where.")


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="vlmhb")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def app(debug: bool) -> None:
    """Evaluate vision-language models on document images, on whichever inference engine you pick.

    \b
    First steps:
      vlmhb demo                      see it work, offline
      vlmhb init                      write an example user_config.csv to edit
      vlmhb run user_config.csv       answers, metrics and a manifest, in one folder
    """


def _nowhere() -> TextIO:
    """Takes the output when the shell closed the stream (``>&-``), for which Python has None."""
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - open until the process ends


def main() -> None:
    """Entry point of the console script."""
    sys.stdout, sys.stderr = sys.stdout or _nowhere(), sys.stderr or _nowhere()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    app(prog_name="vlmhb")
