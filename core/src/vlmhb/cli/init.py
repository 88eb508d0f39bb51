"""``vlmhb init``: an example config to edit."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("init", short_help="Write an example config.")
@click.argument("folder", type=click.Path(path_type=Path), default=Path())
@click.option("--force", is_flag=True, help="Write over files that are there.")
def command(folder: Path, force: bool) -> None:
    """Write a commented, working user_config.csv and vlm_base.csv into FOLDER (default: here).

    \b
    Example:
      vlmhb init my-benchmark
      vlmhb run my-benchmark/user_config.csv
    """
    from vlmhb.config.example import example_files
    from vlmhb.errors import ConfigError

    files = example_files()
    taken = [name for name in files if (folder / name).exists()]
    if taken and not force:
        raise ConfigError(f"{', '.join(taken)} already there in {folder}; use --force to write over it.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write to {folder}: {error.strerror}") from error
    for name in files:
        click.echo(f"Wrote {folder / name}")
    click.echo(f"Try it: vlmhb run {folder / 'user_config.csv'}")
