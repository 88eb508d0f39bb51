"""``vlmhb doctor``: what runs a model, what it needs, before its weights are fetched or read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vlmhb.cli.options import model_options, print_json, split_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vlmhb.contract.model import ModelSpec
    from vlmhb.doctor.diagnosis import Diagnosis, EngineVerdict
    from vlmhb.doctor.memory import Memory
    from vlmhb.doctor.probe import Probe
    from vlmhb.engines import Engines

_LABEL = 15


@click.command("doctor", short_help="Would this model run here, and on which engine?")
@click.argument("model", required=False)
@click.option("--backend", "-b", "backends", multiple=True, help="Ask this engine only; repeatable. [default: all]")
@click.option("--probe", "probing", is_flag=True, help="Also try a tiny random model of the same architecture.")
@click.option("--matrix", is_flag=True, help="Try all families on all engines, without a MODEL; write a page about it.")
@click.option("--family", "families", multiple=True, help="With --matrix: this family only; repeatable.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("compatibility.md"),
    help="With --matrix: the page; its cells lie beside it as JSON. [default: compatibility.md]",
)
@click.option("--fresh", is_flag=True, help="Ask the engines again, whatever they said before.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@model_options
@click.pass_context
def command(
    ctx: click.Context,
    model: str | None,
    backends: tuple[str, ...],
    probing: bool,
    matrix: bool,
    families: tuple[str, ...],
    out: Path,
    fresh: bool,
    as_json: bool,
    options: tuple[str, ...],
) -> None:
    """Say what MODEL needs and which engines could load it, from its configs alone; no weights are read.

    MODEL is a folder, a hub id that is in the hub's cache, or a model that a plugin ships. Each engine is asked in its
    own environment. Exit code 0 when one of those asked loads the model as it is asked for, 1 when none does.

    With --probe a tiny model with random weights is made of the same architecture, and each engine's tokens are
    compared with those of hf, in float32. Exit code 0 then also wants an engine whose tokens are the same.

    With --matrix and no MODEL the same is done for every family that vlmhb knows. It takes hours, and goes on where it
    was stopped.

    \b
    Example:
      vlmhb doctor ./model
      vlmhb doctor ./model -b vllm -o model_impl=transformers --json
      vlmhb doctor ./model --probe
      vlmhb doctor --matrix --family Qwen2-VL
    """
    from vlmhb.doctor.diagnosis import diagnose
    from vlmhb.engines import Engines

    engines = Engines()
    asked = _known(engines, backends) or _all(engines)
    if matrix != (model is None):
        raise click.UsageError("give either a MODEL or --matrix")
    if model is None:
        from vlmhb.cli.doctor_matrix import survey

        survey(engines, asked, families, out, fresh=fresh, as_json=as_json)
        return
    spec = _spec(engines, asked, model, options)
    found = diagnose(model, spec, engines, asked, fresh=fresh, say=_say)
    probed = _probe(engines, spec, found) if probing else None
    can = _can(found, probed)
    if as_json:
        print_json({**_as_dict(found), **({"probe": _as_dict(probed)} if probed else {}), "can": can})
    else:
        for line in (*_lines(found), *(_probe_lines(probed) if probed else ())):
            click.echo(line)
    if not can:
        ctx.exit(1)


def _say(text: str) -> None:
    click.echo(text, err=True)


def _probe(engines: Engines, spec: ModelSpec, found: Diagnosis) -> Probe:
    import tempfile

    from vlmhb.doctor.probe import Way, probe

    ways = [Way(entry.backend, entry.implementation) for entry in found.engines if entry.implementation]
    with tempfile.TemporaryDirectory(prefix="vlmhb-probe-") as folder:
        return probe(engines, spec, ways, Path(folder), _say)


def _can(found: Diagnosis, probed: Probe | None) -> bool:
    """Whether an engine that was asked loads the model, and gives the reference's tokens where that was tried."""
    if probed is None:
        return found.can()
    agreeing = {(cell.backend, cell.implementation) for cell in probed.cells if cell.agrees}
    return any(
        entry.chosen and entry.verdict == "supported" and (entry.backend, entry.implementation) in agreeing
        for entry in found.engines
    )


def _spec(engines: Engines, asked: list[str], model: str, pairs: tuple[str, ...]) -> ModelSpec:
    from vlmhb.contract.model import ModelSpec
    from vlmhb.doctor.place import local_folder

    fields, options = split_pairs(pairs)
    folder = local_folder(engines.model_path(model), fields.get("revision"))
    return ModelSpec(model_path=str(folder.absolute()), options=_fitted(engines, asked, options), **fields)


def _fitted(engines: Engines, asked: list[str], options: dict[str, Any]) -> dict[str, Any]:
    """Engine options as the engine that has them wants them; one that none of the engines has is refused."""
    from vlmhb.config.cells import CellError, fit_option, plain_value
    from vlmhb.config.names import suggestion
    from vlmhb.errors import ConfigError, VlmhbError

    known = {}
    all_here = True
    for name in asked:
        try:
            known.update({option.name: option for option in engines.backend_info(name).options})
        except VlmhbError:  # it is not here: its options are not known, and it will not be asked
            all_here = False
    for name in options:
        if name not in known and all_here:
            raise ConfigError(f"there is no option {name!r} of {' or '.join(asked)}. {suggestion(name, known)}")
    try:
        return {name: fit_option(known[name], v) if name in known else plain_value(v) for name, v in options.items()}
    except CellError as error:
        raise ConfigError(f"{error} {error.hint or ''}".strip()) from error


def _known(engines: Engines, names: tuple[str, ...]) -> list[str]:
    """The engines that the user named, each once; one that nobody has heard of is an error."""
    from vlmhb.discovery.registry import OFFICIAL_BACKENDS

    for name in names:
        if name not in OFFICIAL_BACKENDS:
            engines.backend_info(name)
    return list(dict.fromkeys(names))


def _all(engines: Engines) -> list[str]:
    """Every engine that loads model folders, and those of this project that are not there."""
    from vlmhb.discovery.registry import OFFICIAL_BACKENDS
    from vlmhb.errors import PluginError

    names = []
    for name in dict.fromkeys([*OFFICIAL_BACKENDS, *engines.backend_names()]):
        try:
            if name not in engines.backend_names() or engines.backend_info(name).needs_model_files:
                names.append(name)
        except PluginError:
            names.append(name)
    return names


def _as_dict(found: Diagnosis | Probe) -> dict[str, object]:
    import msgspec

    content: dict[str, object] = msgspec.to_builtins(found)
    return content


def _lines(found: Diagnosis) -> Iterator[str]:
    yield found.model
    if found.path != found.model:
        yield _line("folder", found.path)
    names = ", ".join(found.architectures) or "not named in config.json"
    yield _line("architecture", f"{names} ({found.model_type or 'no model_type'})")
    yield _line("takes", f"{found.modality}; family in vlmhb: {found.family}")
    yield _line("context", f"{found.context:,} tokens" if found.context else "no limit in the config")
    if found.quantization:
        yield _line("quantization", found.quantization)
    if found.own_code:
        yield _line("own code", "the folder brings Python code; it runs only with trust_remote_code")
    for group in found.files:
        yield _line(group.kind, ", ".join([*group.found, *([f"MISSING: {group.missing}"] if group.missing else [])]))
    if found.sampling_defaults:
        said = ", ".join(f"{name}={value}" for name, value in found.sampling_defaults.items())
        yield _line("would set", f"{said} (generation_config.json; vlmhb leaves it out)")
    yield ""
    yield "Memory"
    yield from _memory(found.memory)
    yield ""
    yield "Engines (* is what loading takes)"
    for entry in found.engines:
        yield from _verdict(entry)


def _probe_lines(probed: Probe) -> Iterator[str]:
    twin = probed.twin
    yield ""
    yield f"Probe: a random model of {twin.parameters:,} parameters, {len(probed.requests)} requests, float32"
    for note in twin.notes:
        yield f"  {note}"
    for place, cell in enumerate(probed.cells):
        # The first one's tokens are what the others are compared with.
        words = "answers" if place == 0 and cell.outcome == "same tokens" else cell.words()
        yield f"  {cell.name:<20} {words}"
        if cell.unlike and cell.outcome not in ("same tokens", "refused", "fails"):
            yield f"      the shortest request that shows it: {cell.unlike}"


def _memory(memory: Memory) -> Iterator[str]:
    sizes = ", ".join(f"{_size(size)} in {dtype}" for dtype, size in memory.weights.items())
    yield _line("weights", f"{sizes} (from {memory.weights_source})" if sizes else "not known")
    cache = f"{_size(memory.kv_cache)} in {memory.dtype}" if memory.kv_cache is not None else "not known"
    yield _line("KV cache", f"{cache} for 1,000 tokens")
    if memory.page_tokens is not None:
        yield _line("a scan of A4", f"2480 x 3508 pixels become {memory.page_tokens:,} tokens")
    for fit in memory.fits:
        device = f"{_size(fit.device.free)} of {_size(fit.device.total)} free"
        if fit.batch is not None:
            kind = "one page, a question and an answer" if memory.page_tokens else "a question and an answer"
            device += f": {fit.batch:,} requests of {memory.request_tokens:,} tokens ({kind}) at a time"
        yield _line(fit.device.name, device)


def _verdict(entry: EngineVerdict) -> Iterator[str]:
    mark = "*" if entry.chosen and entry.implementation else " "
    name = f"{entry.backend} {entry.implementation}".strip()
    yield f"{mark} {name:<20} {entry.verdict:<10} {entry.engine} {entry.version or ''}".rstrip()
    for text in (entry.reason, entry.advice, *entry.notes):
        if text:
            yield f"      {text}"


def _line(label: str, text: str) -> str:
    return f"  {label:<{_LABEL}} {text}"


def _size(count: int) -> str:
    unit = next((unit for unit in ((1e9, "GB"), (1e6, "MB")) if count >= unit[0]), (1e3, "kB"))
    return f"{count / unit[0]:.1f} {unit[1]}"
