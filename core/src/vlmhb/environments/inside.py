"""``python -m vlmhb.environments.inside``: run in another environment to say what is in it.

The answer goes to a file, since plugins may print. ``recipe BACKEND DEVICE FILE`` writes the recipe of a backend's
environment; ``contents FILE`` writes what backends there are; ``check BACKEND SPEC FILE`` writes what a backend says
about a model, with the spec as JSON; ``twin BACKEND SPEC FOLDER FILE`` lets a backend make a model's twin.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from vlmhb import __version__
from vlmhb.contract import CONTRACT_VERSION
from vlmhb.contract.backend import BackendInfo, EnvironmentRecipe
from vlmhb.contract.check import ModelCheck
from vlmhb.contract.model import ModelSpec
from vlmhb.contract.twin import Twin
from vlmhb.errors import VlmhbError


class Backend(msgspec.Struct, frozen=True):
    """One backend in an environment."""

    distribution: str
    version: str
    info: BackendInfo | None
    problem: str | None


class Contents(msgspec.Struct, frozen=True):
    """What an environment holds."""

    core: str
    contract: int
    backends: dict[str, Backend]


class Outcome(msgspec.Struct, frozen=True):
    """What the child found, or what went wrong, in words for the user."""

    error: str | None = None
    recipe: EnvironmentRecipe | None = None
    contents: Contents | None = None
    check: ModelCheck | None = None
    twin: Twin | None = None


def recipe(backend: str, device: str) -> Outcome:
    """Ask the plugin of a backend for its recipe."""
    from vlmhb.discovery.registry import Registry

    return Outcome(recipe=Registry().environment_recipe(backend, device) or EnvironmentRecipe())


def contents() -> Outcome:
    """List the backends here."""
    from vlmhb.discovery.registry import Registry
    from vlmhb.errors import PluginError

    registry = Registry()
    found = {}
    for name in registry.backend_names():
        ref = registry.backend_ref(name)
        try:
            info = registry.backend_info(name)
            found[name] = Backend(ref.distribution, ref.version, info, info.problem)
        except PluginError as error:
            found[name] = Backend(ref.distribution, ref.version, None, str(error))
    return Outcome(contents=Contents(__version__, CONTRACT_VERSION, found))


def check(backend: str, spec: str) -> Outcome:
    """Ask a backend whether it could load a model."""
    from vlmhb.discovery.registry import Registry

    return Outcome(check=Registry().check_model(backend, msgspec.json.decode(spec, type=ModelSpec)))


def twin(backend: str, spec: str, folder: str) -> Outcome:
    """Let a backend write a model's twin."""
    from vlmhb.discovery.registry import Registry

    return Outcome(twin=Registry().make_twin(backend, msgspec.json.decode(spec, type=ModelSpec), folder))


WORKS: dict[str, Callable[..., Outcome]] = {"recipe": recipe, "contents": contents, "check": check, "twin": twin}


def main(arguments: list[str]) -> None:
    """Do what the arguments say and write the outcome to the file that comes last."""
    work, *names, out = arguments
    try:
        outcome = WORKS[work](*names)
    except VlmhbError as error:
        outcome = Outcome(error=str(error))
    Path(out).write_bytes(msgspec.json.encode(outcome))


if __name__ == "__main__":
    main(sys.argv[1:])
