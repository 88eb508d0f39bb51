"""``vlmhb backends``: which engines there are, and what is wrong with those that cannot be used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from vlmhb.cli.options import print_json

if TYPE_CHECKING:
    from vlmhb.contract.backend import BackendInfo
    from vlmhb.engines import Engines


@click.command("backends", short_help="List the inference engines.")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def command(name: str | None, as_json: bool) -> None:
    """List the inference engines: installed here, in an environment of their own, broken (with the reason), or absent.

    \b
    Example:
      vlmhb backends
      vlmhb backends --json
      vlmhb backends hf               what it can do, and its options
    """
    from vlmhb.discovery.registry import OFFICIAL_BACKENDS
    from vlmhb.engines import Engines

    registry = Engines()
    if name is not None:
        _show_one(registry.backend_info(name), as_json)
        return
    entries = [_entry(registry, name) for name in registry.backend_names()]
    entries += [_absent(name) for name in OFFICIAL_BACKENDS if name not in registry.backend_names()]
    listed = {(entry["name"], entry["distribution"]) for entry in entries}
    problems = [
        {**msgspec.to_builtins(problem.plugin), "problem": problem.reason}
        for problem in registry.problems()
        if (problem.plugin.name, problem.plugin.distribution) not in listed or problem.plugin.kind == "plugin"
    ]
    if as_json:
        content = {"backends": entries, "plugins": _plugins(registry), "left_out": problems}
        print_json(content)
    else:
        _print(entries, _plugins(registry), problems)


def _show_one(info: BackendInfo, as_json: bool) -> None:
    """One backend in full."""
    if as_json:
        print_json(info)
        return
    click.echo(f"{info.name}: {info.engine} {info.engine_version or ''}, devices {', '.join(info.devices) or 'none'}")
    if info.problem:
        click.echo(f"It cannot be used: {info.problem}")
    abilities = msgspec.to_builtins(info.capabilities).items()
    click.echo(
        "Capabilities: " + ", ".join(key if value is True else f"{key} {value}" for key, value in abilities if value)
    )
    click.echo("Options (model_options, or -o NAME=VALUE):")
    for option in info.options:
        default = "" if option.default is None else f" [default: {option.default}]"
        low = "" if option.minimum is None else f" from {option.minimum:g}"
        high = "" if option.maximum is None else f" to {option.maximum:g}"
        click.echo(f"  {option.name} ({option.type}{low}{high}): {option.help}{default}")


def _entry(registry: Engines, name: str) -> dict[str, Any]:
    from vlmhb.errors import PluginError

    if not registry.is_here(name):
        info = registry.backend_info(name)
        status = "unusable" if info.problem else "own environment"
        return {**msgspec.to_builtins(info), "distribution": None, "version": None, "status": status}
    ref = registry.backend_ref(name)
    entry: dict[str, Any] = {"name": name, "distribution": ref.distribution, "version": ref.version}
    try:
        info = registry.backend_info(name)
    except PluginError as error:
        return {**entry, "status": "broken", "problem": str(error)}
    entry |= msgspec.to_builtins(info)
    return {**entry, "status": "unusable" if info.problem else "installed"}


def _absent(name: str) -> dict[str, Any]:
    from vlmhb.discovery.origin import pip_install

    return {
        "name": name,
        "distribution": f"vlmhb-{name}",
        "version": None,
        "status": "not installed",
        "problem": f"get it with: vlmhb env create {name}   (or here: {pip_install(name)})",
    }


def _plugins(registry: Engines) -> list[dict[str, Any]]:
    return [msgspec.to_builtins(ref) for ref in registry.plugins()]


def _print(entries: list[dict[str, Any]], plugins: list[dict[str, Any]], problems: list[dict[str, Any]]) -> None:
    rows = [("backend", "status", "plugin", "engine", "devices")]
    for entry in entries:
        engine = f"{entry.get('engine', '')} {entry.get('engine_version') or ''}".strip()
        plugin = f"{entry['distribution'] or ''} {entry['version'] or ''}".strip()
        rows.append((entry["name"], entry["status"], plugin, engine, ", ".join(entry.get("devices", ()))))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row, entry in zip(rows, [{}, *entries], strict=True):
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        if entry.get("problem"):
            click.echo(f"    {entry['problem']}")
    if plugins:
        names = ", ".join(f"{p['name']} ({p['distribution']} {p['version']})" for p in plugins)
        click.echo(f"\nOther plugins: {names}")
    for problem in problems:
        title = f"{problem['kind']} {problem['name']} ({problem['distribution']} {problem['version']})"
        click.echo(f"Left out: {title}: {problem['problem']}")
