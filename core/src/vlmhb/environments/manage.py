"""List, check, remove, register and find environments."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from vlmhb import __version__
from vlmhb.contract import CONTRACT_VERSION
from vlmhb.contract.backend import BackendInfo
from vlmhb.environments import places, record, registered, uv
from vlmhb.environments.create import create, launch_of
from vlmhb.environments.device import DEVICES, has_cuda
from vlmhb.environments.places import Progress
from vlmhb.environments.sources import core_source
from vlmhb.errors import ManagedEnvironmentError, VlmhbError
from vlmhb.worker.launch import Launch


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """One environment, as ``vlmhb env list`` shows it.

    Attributes:
        name: its name; for a registered one its path.
        kind: ``managed`` (made by vlmhb) or ``registered`` (made by the user).
        path: its folder.
        backends: names of the backends it is for.
        device: ``cpu`` or ``cuda``; empty for a registered one.
        python, core: versions in it; empty when unknown.
        engines: engine distribution -> version.
        problem: why it cannot be used, or None.
    """

    name: str
    kind: Literal["managed", "registered"]
    path: str
    backends: tuple[str, ...]
    device: str = ""
    python: str = ""
    core: str = ""
    engines: dict[str, str] = {}
    problem: str | None = None


def list_environments() -> list[Environment]:
    """All environments by name; looks at files only."""
    folder = places.environments_folder()
    paths = sorted(p for p in folder.iterdir() if p.is_dir() and p.name[0] != ".") if folder.is_dir() else []
    return [_managed(path) for path in paths] + [_registered(entry) for entry in registered.read()]


def remove(name: str, progress: Progress = lambda _: None) -> None:
    """Delete a managed environment; of a registered one (name or path) only the entry.

    Raises:
        ManagedEnvironmentError: there is none of that name.
    """
    if registered.forget(name):
        progress(f"{name} is no longer registered; its folder is left as it is")
        return
    path = places.environment_path(name)
    if name not in {environment.name for environment in list_environments()}:
        known = ", ".join(environment.name for environment in list_environments()) or "none"
        raise ManagedEnvironmentError(f"there is no environment {name!r}. There are: {known}.")
    with places.locked(name, progress):
        places.discard(path)
    progress(f"{name} is removed")


def add(path: str | Path) -> Environment:
    """Register an environment that the user made; its backends are then found like those of managed ones.

    Args:
        path: the environment's folder, or its Python executable.

    Raises:
        ManagedEnvironmentError: it holds no vlmhb, another version of it, or no backend.
    """
    given = Path(path).expanduser().absolute()
    python = given if given.is_file() else places.python_of(given)
    if not os.access(python, os.X_OK):
        raise ManagedEnvironmentError(f"{given} is no environment: there is no {python}.")
    try:
        contents = uv.ask_inside(python, "contents").contents
    except ManagedEnvironmentError as error:
        raise ManagedEnvironmentError(
            f"{given} does not hold a working vlmhb {__version__}; install it there, with the engine's plugin: "
            f"{python} -m pip install {shlex.quote(core_source().value)} ...\n{error}"
        ) from error
    assert contents is not None
    if (contents.core, contents.contract) != (__version__, CONTRACT_VERSION):
        raise ManagedEnvironmentError(f"{given} holds vlmhb {contents.core}, and this is vlmhb {__version__}.")
    if not contents.backends:
        raise ManagedEnvironmentError(f"{given} holds no plugin for an engine.")
    entry = registered.Entry(path=str(given), python=str(python), contents=contents)
    registered.remember(entry)
    return _registered(entry)


def doctor(name: str | None = None, progress: Progress = lambda _: None) -> list[Environment]:
    """Check environments thoroughly: start a worker in each and really import the engine.

    Args:
        name: only this one; None checks all.
        progress: told which one is being checked.

    Raises:
        ManagedEnvironmentError: there is none of that name.
    """
    found = [env for env in list_environments() if name in (None, env.name)]
    if name is not None and not found:
        raise ManagedEnvironmentError(f"there is no environment {name!r}.")
    checked = []
    for environment in found:
        progress(f"checking {environment.name}")
        problem = environment.problem or _deep_problem(environment)
        checked.append(msgspec.structs.replace(environment, problem=problem))
    return checked


def find_environment(backend: str, *, device: str | None = None, rebuild: Progress | None = None) -> Launch | None:
    """Where a worker for a backend is started: here, in a managed environment, or in a registered one.

    Args:
        backend: the backend's name.
        device: ``cpu`` or ``cuda`` to accept managed environments for that device only.
        rebuild: make a managed environment that is broken or outdated again, and tell this about it.

    Returns:
        None when nothing holds the backend.

    Raises:
        ManagedEnvironmentError: there is an environment, but it is of no use; the message says what to do.
    """
    from vlmhb.discovery.registry import Registry

    registry = Registry()
    if backend in registry.backend_names() and registry.backend_problem(backend) is None:
        return Launch.here()
    order = [device] if device else sorted(DEVICES, key=lambda name: (name == "cuda") != has_cuda())
    for kind in order:
        path = places.environment_path(places.environment_name(backend, kind))
        if path.is_dir():
            return _launch_managed(path, backend, kind, rebuild)
    for entry in registered.read():
        if backend in entry.contents.backends:
            return _launch_registered(entry, backend)
    return None


def backends_elsewhere() -> dict[str, BackendInfo]:
    """What the backends of all environments said about themselves; ``problem`` is set where one is of no use now.

    Looks at files only. A managed environment that is out of date is of use: it is made again before it is used. Where
    several environments hold a backend, the one that :func:`find_environment` would take counts.
    """
    found: dict[str, BackendInfo] = {}
    for kind in sorted(DEVICES, key=lambda name: (name == "cuda") != has_cuda()):
        for path in sorted(places.environments_folder().glob(f"*-{kind}")):
            made = record.read(path)
            if isinstance(made, str):
                backend = path.name.removesuffix(f"-{kind}")
                problem: str | None = f"the environment {path.name} cannot be used: {made}"
                info = BackendInfo(name=backend, engine="", engine_version=None, devices=(), problem=problem)
            else:
                info = made.info
            found.setdefault(info.name, info)
    for entry in registered.read():
        for name, backend_here in entry.contents.backends.items():
            if backend_here.info is not None:
                problem = _registered(entry).problem or backend_here.problem
                found.setdefault(name, msgspec.structs.replace(backend_here.info, problem=problem))
    return found


def _launch_managed(path: Path, backend: str, device: str, rebuild: Progress | None) -> Launch:
    found = record.read(path)
    problem = found if isinstance(found, str) else record.problem(path, found)
    if problem is not None:
        if rebuild is None:
            raise ManagedEnvironmentError(
                f"the environment {path.name} cannot be used: {problem}. Make it again with: "
                f"vlmhb env create {backend} --device {device}"
            )
        asked = (None, None) if isinstance(found, str) else (found.asked_python, found.asked_plugin)
        create(backend, device=device, python=asked[0], plugin=asked[1], progress=rebuild)
        found = record.read(path)
    if isinstance(found, str):
        raise ManagedEnvironmentError(f"the environment {path.name} cannot be used: {found}.")
    return launch_of(path, found.recipe, found.freeze)


def _launch_registered(entry: registered.Entry, backend: str) -> Launch:
    if problem := _registered(entry).problem or entry.contents.backends[backend].problem:
        raise ManagedEnvironmentError(
            f"the registered environment {entry.path} cannot be used for {backend}: {problem}. Mend it and run "
            f"vlmhb env add {entry.path} again, or vlmhb env remove {entry.path}."
        )
    return Launch(python=entry.python, environment=f"the registered environment {entry.path}")


def _managed(path: Path) -> Environment:
    found = record.read(path)
    if isinstance(found, str):
        backend, _, device = path.name.rpartition("-")
        problem: str | None = found
        return Environment(
            name=path.name, kind="managed", path=str(path), backends=(backend,), device=device, problem=problem
        )
    return Environment(
        name=path.name,
        kind="managed",
        path=str(path),
        backends=(found.backend,),
        device=found.device,
        python=found.python,
        core=found.core,
        engines=_engines([found.info]),
        problem=record.problem(path, found),
    )


def _registered(entry: registered.Entry) -> Environment:
    contents = entry.contents
    problem = None
    if not os.access(entry.python, os.X_OK):
        problem = f"there is no {entry.python} any more"
    elif (contents.core, contents.contract) != (__version__, CONTRACT_VERSION):
        problem = f"it holds vlmhb {contents.core} and this is {__version__}"
    infos = [backend.info for backend in contents.backends.values() if backend.info]
    return Environment(
        name=entry.path,
        kind="registered",
        path=entry.path,
        backends=tuple(contents.backends),
        core=contents.core,
        engines=_engines(infos),
        problem=problem,
    )


def _engines(infos: Iterable[BackendInfo]) -> dict[str, str]:
    return {info.engine: info.engine_version or "unknown" for info in infos}


def _deep_problem(environment: Environment) -> str | None:
    from vlmhb.worker.model import describe

    path = Path(environment.path)
    try:
        if environment.kind == "managed":
            found = record.read(path)
            assert not isinstance(found, str)
            launch = launch_of(path, found.recipe, found.freeze)
            if found.recipe.verify:
                uv.python(Path(launch.python), ["-c", found.recipe.verify], "its engine", found.recipe.env)
        else:
            entry = next(entry for entry in registered.read() if entry.path == environment.path)
            launch = Launch(python=entry.python, environment=environment.path)
        problems = [describe(backend, launch).problem for backend in environment.backends]
    except VlmhbError as error:
        return str(error)
    return "; ".join(problem for problem in problems if problem) or None
