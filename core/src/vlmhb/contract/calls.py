"""Turning what callers of the Python API pass into requests and options."""

from __future__ import annotations

import difflib
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from vlmhb.contract.backend import BackendInfo, EngineOption
from vlmhb.contract.model import ModelSpec
from vlmhb.contract.request import GenerationRequest, ImageInput, SamplingParams
from vlmhb.errors import ConfigError, Fault

if TYPE_CHECKING:
    from vlmhb.contract.model import ImageLike

_TYPES: dict[str, type | tuple[type, ...]] = {"int": int, "float": (int, float), "bool": bool, "str": str}


def image_input(image: ImageLike) -> ImageInput:
    """Make an :class:`ImageInput` of a path, encoded bytes or a Pillow image (kept losslessly, as PNG)."""
    if isinstance(image, ImageInput):
        return image
    if isinstance(image, str | Path):
        return ImageInput(path=str(Path(image).absolute()))
    if isinstance(image, bytes):
        return ImageInput(data=image)
    if hasattr(image, "save") and hasattr(image, "mode"):
        buffer = io.BytesIO()
        # PNG has no CMYK, YCbCr, LAB or HSV; TIFF keeps each of them as it is.
        image.save(buffer, "PNG" if image.mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16") else "TIFF")
        return ImageInput(data=buffer.getvalue())
    raise ConfigError(f"an image must be a path, bytes or a Pillow image, not {type(image).__name__}")


def requests_from_call(
    prompts: str | Sequence[str], images: Any, system: str | None, sampling: dict[str, Any]
) -> list[GenerationRequest]:
    """The requests of one ``ModelInterface.generate`` call, ids ``"0"``, ``"1"``, ... in the order asked."""
    single = isinstance(prompts, str)
    texts = [prompts] if isinstance(prompts, str) else _listed("prompts", prompts)
    for text in texts:
        if not isinstance(text, str):
            raise ConfigError(f"a prompt must be text, not {type(text).__name__}")
    groups = [images] if single else ([None] * len(texts) if images is None else _listed("images", images))
    if len(groups) != len(texts):
        raise ConfigError(f"{len(texts)} prompts need {len(texts)} entries in images, not {len(groups)}")
    params = sampling_from(sampling)
    return [
        GenerationRequest.ask(str(index), text, _image_group(group), system=system, sampling=params)
        for index, (text, group) in enumerate(zip(texts, groups, strict=True))
    ]


def _listed(name: str, values: Any) -> list[Any]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ConfigError(f"{name} must be one for each prompt in a list, not {type(values).__name__}")
    return list(values)


def sampling_from(values: dict[str, Any]) -> SamplingParams:
    """Checked sampling parameters from keyword arguments; ``stop`` may be one text or a sequence.

    Raises:
        ConfigError: an unknown name, a wrong type, or a value out of range.
    """
    names = SamplingParams.__struct_fields__
    unknown = [name for name in values if name not in names]
    if unknown:
        raise ConfigError([_unknown("sampling parameter", name, names) for name in unknown])
    if isinstance(values.get("stop"), str):
        values = {**values, "stop": (values["stop"],)}
    try:
        params = msgspec.convert({k: v for k, v in values.items() if v is not None}, SamplingParams)
    except msgspec.ValidationError as error:
        raise ConfigError(f"sampling parameters: {error}") from error
    problems = params.problems()
    if problems:
        raise ConfigError([Fault(message=text) for text in problems.values()])
    return params


def split_options(info: BackendInfo, values: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split keyword arguments into fields of :class:`ModelSpec` and checked engine options of a backend.

    Raises:
        ConfigError: every name that is neither, with the nearest known name, every option of a wrong type or out of its
            range, and a device that is not there.
    """
    spec_fields = set(ModelSpec.__struct_fields__) - {"model_path", "options"}
    options = {option.name: option for option in info.options}
    fields = {name: value for name, value in values.items() if name in spec_fields and name not in options}
    chosen = {name: value for name, value in values.items() if name not in fields}
    chosen.update(chosen.pop("options", {}))
    faults: list[Fault] = []
    for name, value in chosen.items():
        if name not in options:
            faults.append(_unknown(f"option of backend {info.name}", name, [*options, *sorted(spec_fields)]))
        elif problem := option_problem(options[name], value):
            faults.append(Fault(message=problem))
    if problem := device_problem(info, str(fields.get("device", "auto"))):
        faults.append(Fault(message=f"{problem}."))
    if faults:
        raise ConfigError(faults)
    return fields, chosen


def option_problem(option: EngineOption, value: Any) -> str | None:
    """Why a value does not fit an engine option, or None; the value None is the option left out."""
    if value is None:
        return None
    wanted = _TYPES.get(option.type)
    fits = wanted is None or (isinstance(value, wanted) and (option.type == "bool" or not isinstance(value, bool)))
    if not fits:
        return f"option {option.name} must be of type {option.type}, not {value!r}"
    if option.choices and value not in option.choices:
        return f"option {option.name} must be one of {', '.join(option.choices)}, not {value!r}"
    if option.minimum is not None and not value >= option.minimum:
        return f"option {option.name} must be at least {option.minimum:g}, not {value!r}"
    if option.maximum is not None and not value <= option.maximum:
        return f"option {option.name} must be at most {option.maximum:g}, not {value!r}"
    return None


def device_problem(info: BackendInfo, device: str) -> str | None:
    """Why a backend cannot use a device here, or None; a backend that names no devices is not held to them.

    ``cuda`` is any of ``cuda:0``, ``cuda:1``; a backend that names ``cuda`` alone did not count them.
    """
    named = {"auto", *info.devices}
    kinds = {name.partition(":")[0] for name in info.devices}
    if not info.devices or device in named | kinds or device.partition(":")[0] in named:
        return None
    return f"{info.name} cannot use the device {device!r} here. It found: {', '.join(info.devices)}"


def _image_group(group: Any) -> list[ImageInput]:
    if group is None:
        return []
    if isinstance(group, list | tuple):
        return [image_input(image) for image in group]
    return [image_input(group)]


def _unknown(what: str, name: str, known: Sequence[str]) -> Fault:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(known)}."
    return Fault(message=f"there is no {what} named {name!r}.", hint=hint)
