"""The sampling parameters of a row: command line, then the row, then what ``sampling_defaults`` names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vlmhb.config.cells import one_of
from vlmhb.config.columns import SAMPLING, SAMPLING_DEFAULTS
from vlmhb.config.sheet import Row, Setting
from vlmhb.contract.calls import sampling_from
from vlmhb.contract.request import SamplingParams
from vlmhb.errors import ConfigError, Fault, ModelLoadError
from vlmhb.prompting.folder import sampling_defaults_of

_FROM_MODEL = {
    "max_new_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "repetition_penalty": "repetition_penalty",
}
"""Names in a model folder's generation_config.json, and ours."""
_ONLY_SAMPLING = ("temperature", "top_p", "top_k")


def sampling_of(
    row: Row, overrides: Mapping[str, Any], model_path: str | None, faults: list[Fault], notes: list[str]
) -> SamplingParams:
    """Checked sampling parameters of a row.

    Args:
        row: a row of user_config.csv.
        overrides: checked values of the command line.
        model_path: where the model is, for ``sampling_defaults`` = ``model``; None when it was not found.
        faults: takes values out of range, at the cell they come from.
        notes: takes what was taken from the model's folder.
    """
    settings: dict[str, Setting] = {}
    if row.parse(SAMPLING_DEFAULTS, one_of("vlmhb", "model"), faults) == "model" and model_path is not None:
        settings.update(_of_model(row, model_path, faults, notes))
    for name, parser in SAMPLING.items():
        value = row.parse(name, parser, faults)
        if value is not None:
            settings[name] = Setting(value, row, name)
    settings.update({name: Setting(value, None, name) for name, value in overrides.items()})
    params = SamplingParams(**{name: setting.value for name, setting in settings.items()})
    problems = params.problems()
    faults.extend(settings[name].fault(f"{text}.") for name, text in problems.items())
    return params


def checked_overrides(values: Mapping[str, Any], faults: list[Fault]) -> dict[str, Any]:
    """Sampling values of the command line; none of them, and faults, when one is wrong."""
    given = {name: value for name, value in values.items() if value is not None}
    try:
        params = sampling_from(given)
    except ConfigError as error:
        faults.extend(error.faults)
        return {}
    return {name: getattr(params, name) for name in given}


def _of_model(row: Row, model_path: str, faults: list[Fault], notes: list[str]) -> dict[str, Setting]:
    """What the model folder's own generation_config.json says, in our meaning."""
    if not Path(model_path).is_dir():
        message = f"the model's own sampling values need its folder, and {model_path} is none."
        hint = "Download the model and write its folder into model_path of vlm_base.csv."
        faults.append(row.fault(SAMPLING_DEFAULTS, message, hint))
        return {}
    try:
        config = sampling_defaults_of(model_path)
    except ModelLoadError as error:
        faults.append(row.fault(SAMPLING_DEFAULTS, str(error)))
        return {}
    values = generation_config_values(config)
    unused = [name for name in config if name != "do_sample" and _FROM_MODEL.get(name) not in values]
    said = ", ".join(f"{name}={value:g}" for name, value in values.items()) or "none"
    left = f" Not used: {', '.join(unused)}." if unused else ""
    notes.append(f"{row.file}, row {row.number}: sampling values from the model's own folder: {said}.{left}")
    return {name: Setting(value, row, SAMPLING_DEFAULTS) for name, value in values.items()}


def generation_config_values(config: Mapping[str, Any]) -> dict[str, Any]:
    """Sampling parameters that a generation_config.json states.

    As in transformers, temperature, top_p and top_k count only with ``do_sample: true``; without it decoding is greedy.
    Values that are no numbers are left out.
    """
    values = {
        ours: config[theirs]
        for theirs, ours in _FROM_MODEL.items()
        if isinstance(config.get(theirs), int | float) and not isinstance(config[theirs], bool)
    }
    if config.get("do_sample") is not True:
        values = {name: value for name, value in values.items() if name not in _ONLY_SAMPLING}
    elif "temperature" not in values:
        values["temperature"] = 1.0
    return values
