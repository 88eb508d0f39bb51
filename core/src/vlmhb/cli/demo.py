"""``vlmhb demo``: the whole way, offline, on documents and a model that come with the demo plugin."""

from __future__ import annotations

from pathlib import Path

import click

DATASET = "demo-documents"
MODELS = ("vlmhb-reader", "tiny-qwen2-vl")
"""The first of these that is there is used; only the first one can read."""
_CONFIG = """\
dataset;task;backend;model_name;metrics;max_tokens;dtype
{dataset};VQA;{backend};{model};['CER', 'WER', 'exact_match'];24;float32
"""


@click.command("demo", short_help="See it work, offline.")
@click.option("--backend", "-b", help="The engine. [default: hf, or the only one there is]")
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/demo"), help="[default: runs/demo]")
@click.option("--limit", type=click.IntRange(min=1), help="Ask only so many rows.")
@click.option("--fresh", is_flag=True, help="Ask everything again.")
def command(backend: str | None, out: Path, limit: int | None, fresh: bool) -> None:
    """Run the embedded model on the embedded documents; needs no network.

    \b
    Example:
      vlmhb demo
      vlmhb demo --backend hf --limit 10
    """
    from vlmhb.api import only_backend
    from vlmhb.cli.run import finish, run_config
    from vlmhb.engines import Engines
    from vlmhb.errors import PluginError

    registry = Engines()
    models = registry.named_models()
    name = next((name for name in MODELS if name in models), None)
    if name is None or DATASET not in registry.named_datasets():
        raise PluginError("the demo needs the package vlmhb-demo: pip install 'vlmhb[demo]'")
    backend = backend or ("hf" if "hf" in registry.backend_names() else only_backend(registry))
    out.mkdir(parents=True, exist_ok=True)
    config = out / "user_config.csv"
    config.write_text(_CONFIG.format(dataset=DATASET, backend=backend, model=name), encoding="utf-8")
    click.echo(f"Model: {name}. {models[name].description}")
    outcome = run_config(config, out, limit=limit, fresh=fresh)
    code = finish(outcome)
    if name != MODELS[0] and registry.backend_info(backend).needs_model_files:
        click.echo(f"{name} is randomly initialised: its answers are noise, and so are the figures above.")
    raise SystemExit(code)
