"""``vlmhb demo``: the whole way, offline, on documents and a model that come with the demo plugin."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vlmhb.engines import Engines

DATASET = "demo-documents"
MODELS = ("vlmhb-reader", "tiny-qwen2-vl")
"""The first of these that is there is used; only the first one can read."""
METRICS = ("CER", "WER", "exact_match")
_HEADER = "dataset;task;backend;model_name;metrics;max_tokens;dtype\n"
_ROW = "{dataset};VQA;{backend};{model};{metrics};256;float32\n"


@click.command("demo", short_help="See it work, offline.")
@click.option(
    "--backends", "--backend", "-b", "names", help="For example hf,vllm,sglang. [default: hf, or the only one]"
)
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/demo"), help="[default: runs/demo]")
@click.option("--limit", type=click.IntRange(min=1), help="Ask only so many rows.")
@click.option("--fresh", is_flag=True, help="Ask everything again.")
def command(names: str | None, out: Path, limit: int | None, fresh: bool) -> None:
    """Run the embedded model on the embedded documents; needs no network.

    Of several engines, those that are not there yet get their environments first (that does need a network), and in
    the end they stand beside each other.

    \b
    Example:
      vlmhb demo
      vlmhb demo --limit 10
      vlmhb demo --backends hf,vllm,sglang
    """
    from vlmhb.cli.columns import print_columns
    from vlmhb.cli.run import finish, run_config
    from vlmhb.discovery.origin import pip_install
    from vlmhb.engines import Engines
    from vlmhb.errors import PluginError

    registry = Engines()
    models = registry.named_models()
    model = next((name for name in MODELS if name in models), None)
    if model is None or DATASET not in registry.named_datasets():
        raise PluginError(f"the demo needs the package vlmhb-demo: {pip_install('demo')}")
    backends = _backends(names, registry)
    if _made(backends, registry):
        registry = Engines()
    out.mkdir(parents=True, exist_ok=True)
    config = out / "user_config.csv"
    rows = [_ROW.format(dataset=DATASET, backend=name, model=model, metrics=list(METRICS)) for name in backends]
    config.write_text(_HEADER + "".join(rows), encoding="utf-8")
    click.echo(f"Model: {model}. {models[model].description}")
    outcome = run_config(config, out, limit=limit, fresh=fresh)
    code = finish(outcome)
    if len(backends) > 1:
        print_columns(out, registry, METRICS[-1])
    if model != MODELS[0] and registry.backend_info(backends[0]).needs_model_files:
        click.echo(f"{model} is randomly initialised: its answers are noise, and so are the figures above.")
    raise SystemExit(code)


def _backends(names: str | None, registry: Engines) -> list[str]:
    from vlmhb.api import only_backend

    wanted = [name.strip() for name in (names or "").split(",") if name.strip()]
    if not wanted:
        wanted = ["hf" if "hf" in registry.backend_names() else only_backend(registry)]
    return list(dict.fromkeys(wanted))


def _made(backends: Sequence[str], registry: Engines) -> bool:
    """Make the environments of those official engines that are not there; the run refuses any other name."""
    from vlmhb.discovery.registry import OFFICIAL_BACKENDS
    from vlmhb.environments.create import create

    missing = [name for name in backends if name in OFFICIAL_BACKENDS and name not in registry.backend_names()]
    for name in missing:
        click.echo(f"{name} is not here. It gets an environment of its own, once; see 'vlmhb env list'.", err=True)
        create(name, progress=lambda sentence: click.echo(sentence, err=True))
    return bool(missing)
