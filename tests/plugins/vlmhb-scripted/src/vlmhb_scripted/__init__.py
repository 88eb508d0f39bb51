"""The plugin: describes the scripted engine and loads it. :mod:`vlmhb_scripted.script` explains the script."""

from __future__ import annotations

import json
import os
from importlib import metadata

import msgspec
import vlmhb

vlmhb_contract = 1

OPTIONS = (
    vlmhb.EngineOption(name="batch", type="int", default=8, help="requests that the engine takes at a time"),
    vlmhb.EngineOption(name="ahead", type="int", default=0, help="requests that it reads before it can start them"),
    vlmhb.EngineOption(name="delay", type="float", default=0.0, help="seconds an answer takes"),
    vlmhb.EngineOption(name="script", type="str", default="", help="path of a script; else $VLMHB_SCRIPT"),
)


@vlmhb.hookimpl
def vlmhb_backend_info(backend):
    """Describe the engine under the name it is registered with.

    $VLMHB_SCRIPTED_PROBLEM says why it is of no use, $VLMHB_SCRIPTED_STRUCTURED names the backends that take schemas.
    """
    structured = backend in os.environ.get("VLMHB_SCRIPTED_STRUCTURED", "").split(",")
    return vlmhb.BackendInfo(
        name=backend,
        engine="vlmhb-scripted",
        engine_version=metadata.version("vlmhb-scripted"),
        devices=("cpu",),
        capabilities=vlmhb.Capabilities(streaming=True, batching=True, structured_output=structured),
        options=OPTIONS,
        needs_model_files=False,
        problem=os.environ.get("VLMHB_SCRIPTED_PROBLEM"),
    )


@vlmhb.hookimpl
def vlmhb_check_model(backend, spec):
    """What $VLMHB_SCRIPTED_CHECK (JSON of a ModelCheck) says; each call is a line in $VLMHB_SCRIPTED_ASKED."""
    said = os.environ.get("VLMHB_SCRIPTED_CHECK")
    if said is None:
        return None
    with open(os.environ["VLMHB_SCRIPTED_ASKED"], "a", encoding="utf-8") as file:  # noqa: PTH123
        file.write(f"{backend} {spec.model_impl} {spec.options}\n")
    if said == "raise":
        raise ValueError("an odd model")
    return msgspec.json.decode(said, type=vlmhb.ModelCheck)


@vlmhb.hookimpl
def vlmhb_make_twin(backend, spec, out):
    """A "twin" of which only the folder is real."""
    os.makedirs(out)  # noqa: PTH103
    return vlmhb.Twin(path=out, image_counts=(0, 1, 2), parameters=1000, notes=("it is no model at all.",))


@vlmhb.hookimpl
def vlmhb_prepare(backend, spec):
    """Stands for the imports of an engine: a line in the script's log, and what its rules say."""
    from vlmhb_scripted.engine import prepare

    prepare(backend, spec)
    return True


@vlmhb.hookimpl
def vlmhb_load(backend, spec):
    """Load a "model"."""
    from vlmhb_scripted.engine import ScriptedModel

    model = ScriptedModel(backend)
    model.load_spec(spec)
    return model


@vlmhb.hookimpl
def vlmhb_environment(backend, device):
    """A recipe that needs nothing; $VLMHB_SCRIPTED_RECIPE (JSON) changes it."""
    fields = json.loads(os.environ.get("VLMHB_SCRIPTED_RECIPE", "{}"))
    return vlmhb.EnvironmentRecipe(
        **{
            "disk_bytes": 1_000_000,
            "verify": "import vlmhb_scripted.engine",
            "env": {"VLMHB_SCRIPTED_DEVICE": device},
            **{name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()},
        }
    )
