"""Making an environment: aside, checked by a real import of its engine, and then given its name.

The folder is a *relocatable* virtual environment (no absolute path of its own in any script), so that the finished
one can be renamed into place; until then nothing under the environment's name is touched. A creation that was
interrupted begins again with an empty folder: half-copied packages are not to be trusted, and what uv had
downloaded is in its cache, so nothing is downloaded twice.
"""

from __future__ import annotations

import errno
import math
import shutil
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from vlmhb import __version__
from vlmhb.contract import CONTRACT_VERSION
from vlmhb.contract.backend import BackendInfo, EnvironmentRecipe
from vlmhb.environments import places, record, sources, uv
from vlmhb.environments.device import resolve_device
from vlmhb.environments.places import Progress
from vlmhb.environments.record import Record
from vlmhb.environments.sources import Source
from vlmhb.errors import ManagedEnvironmentError, VlmhbError
from vlmhb.worker.launch import Launch

DOWNLOAD_RATE = 12.5e6
"""Bytes a second of a connection of 100 Mbit/s."""


def create(
    backend: str,
    *,
    device: str = "auto",
    python: str | None = None,
    plugin: str | None = None,
    fresh: bool = False,
    check_disk: bool = True,
    progress: Progress = lambda _: None,
) -> Path:
    """Make the managed environment of a backend, or return the one that is there and in order.

    Args:
        backend: the backend's name.
        device: ``auto``, ``cpu`` or ``cuda``.
        python: version (``3.12``) or executable; None is the version that runs this, if the recipe allows it.
        plugin: folder, wheel or requirement of the plugin; needed when it is not an official one.
        fresh: make it again even when it is in order.
        check_disk: refuse when the disk has less room than the recipe says.
        progress: told what is being done.

    Returns:
        The environment's folder.

    Raises:
        ManagedEnvironmentError: there is no such engine, or it cannot be made; nothing half-made is left.
    """
    device = resolve_device(device)
    core = sources.core_source()
    source = sources.plugin_source(backend, plugin, core)
    name = places.environment_name(backend, device)
    path = places.environment_path(name)
    with places.locked(name, progress):
        if path.exists() and not fresh:
            found = record.read(path)
            problem = found if isinstance(found, str) else record.problem(path, found) or _asked(found, python, plugin)
            if problem is None:
                progress(f"{name} is there already and in order: {path}")
                return path
            progress(f"{name} is made again: {problem}")
        maker = Maker(backend, device, python, core, source, plugin, check_disk, progress)
        try:
            maker.make()
            places.discard(path)
            maker.folder.rename(path)
        except OSError as error:
            raise _os_error(error, name) from error
        finally:
            shutil.rmtree(maker.folder, ignore_errors=True)
        progress(f"{name} is ready: {path}")
        return path


def _asked(found: Record, python: str | None, plugin: str | None) -> str | None:
    """Why an environment in order is not the one that is asked for now."""
    if python is not None and python not in (found.asked_python, found.python, found.python.rpartition(".")[0]):
        return f"it has Python {found.python} and {python} is wanted"
    if plugin is not None and Source.of(plugin).value != found.sources[1].value:
        return f"its plugin came from {found.sources[1].value} and {plugin} is wanted"
    return None


def _os_error(error: OSError, name: str) -> ManagedEnvironmentError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ManagedEnvironmentError(f"making {name}: the disk is full. Make room, then run the command again.")
    return ManagedEnvironmentError(f"making {name}: {error.strerror}: {error.filename}")


class Maker:
    """One creation: the steps share the folder and what was asked for."""

    def __init__(
        self,
        backend: str,
        device: str,
        python: str | None,
        core: Source,
        source: Source,
        plugin: str | None,
        check_disk: bool,
        progress: Progress,
    ) -> None:
        self.folder = places.building_path(places.environment_name(backend, device))
        self._backend = backend
        self._device = device
        self._python = python
        self._core = core
        self._source = source
        self._plugin = plugin
        self._check_disk = check_disk
        self._progress = progress

    def make(self) -> None:
        """Fill the folder; raises when it could not be made or does not work."""
        core, plugin = self._core, self._source
        self._say(f"making {self.folder.name} (core: {core.value}, plugin: {plugin.value})")
        self._begin(self._python or record.python_version(), core, plugin)
        recipe = self._recipe()
        if not self._python and recipe.python and not fits(record.python_version(), recipe.python):
            self._begin(recipe.python, core, plugin)
        self._look_at_disk(recipe)
        self._install_engine(recipe, plugin)
        info = self._verify(recipe)
        record.write(self.folder, self._record(recipe, info, core, plugin))

    def _begin(self, python: str, core: Source, plugin: Source) -> None:
        """An empty environment with the core, and the plugin without its engine, so that it can be asked."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self._uv(["venv", "--relocatable", "--python", python, str(self.folder)], f"finding Python {python}")
        self._pip([*core.arguments()], "installing vlmhb")
        self._pip(["--no-deps", *plugin.arguments()], f"installing the plugin of {self._backend}")

    def _recipe(self) -> EnvironmentRecipe:
        recipe = uv.ask_inside(places.python_of(self.folder), "recipe", self._backend, self._device).recipe
        assert recipe is not None
        if recipe.note:
            self._say(recipe.note)
        return recipe

    def _look_at_disk(self, recipe: EnvironmentRecipe) -> None:
        free = shutil.disk_usage(self.folder).free
        minutes = math.ceil(recipe.disk_bytes / DOWNLOAD_RATE / 60)
        self._say(
            f"this takes about {uv.size(recipe.disk_bytes)} of disk ({uv.size(free)} are free) and, at 100 Mbit/s, "
            f"at most {minutes} minutes, less for what is in the cache"
        )
        if self._check_disk and free < recipe.disk_bytes:
            raise ManagedEnvironmentError(
                f"{self.folder.name} takes about {uv.size(recipe.disk_bytes)} of disk, and only "
                f"{uv.size(free)} are free where {places.home()} lies. Make room, or move the folder with "
                f"${places.HOME_VARIABLE}."
            )

    def _install_engine(self, recipe: EnvironmentRecipe, plugin: Source) -> None:
        files: list[str] = []
        for option, lines in (("--override", recipe.overrides), ("--constraint", recipe.constraints)):
            if lines:
                file = self.folder / f"vlmhb{option[1:]}.txt"
                file.write_text("".join(f"{line}\n" for line in lines))
                files += [option, str(file)]
        for url in recipe.index_urls:
            files += ["--index", url]
        packages = [*plugin.arguments(), *recipe.requirements]
        self._pip([*files, *packages], f"installing the engine of {self._backend}")

    def _verify(self, recipe: EnvironmentRecipe) -> BackendInfo:
        """Really import the engine, and let the plugin describe itself to a worker's owner."""
        from vlmhb.worker.model import describe

        self._say("checking that the engine can be imported")
        what = f"the new environment {self.folder.name} does not work"
        if recipe.verify:
            uv.python(places.python_of(self.folder), ["-c", recipe.verify], what, recipe.env)
        try:
            info = describe(self._backend, launch_of(self.folder, recipe, ()))
        except VlmhbError as error:
            raise ManagedEnvironmentError(f"{what}: {error}") from error
        if info.problem:
            raise ManagedEnvironmentError(f"{what}: {info.problem}")
        return info

    def _record(self, recipe: EnvironmentRecipe, info: BackendInfo, core: Source, plugin: Source) -> Record:
        from uv import find_uv_bin

        python = places.python_of(self.folder)
        frozen = subprocess.run(
            [find_uv_bin(), "pip", "freeze", "--python", str(python)], capture_output=True, text=True, check=True
        )
        version = subprocess.run(
            [str(python), "-c", "import platform; print(platform.python_version())"],
            capture_output=True,
            text=True,
            check=True,
        )
        return Record(
            format=record.FORMAT,
            backend=self._backend,
            device=self._device,
            python=version.stdout.strip(),
            core=__version__,
            contract=CONTRACT_VERSION,
            sources=(core, plugin),
            asked_python=self._python,
            asked_plugin=plugin.value if self._plugin else None,
            recipe=recipe,
            info=info,
            freeze=tuple(frozen.stdout.splitlines()),
            packages=record.packages_in(self.folder),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            uv=metadata.version("uv"),
        )

    def _pip(self, arguments: list[str], what: str) -> None:
        self._uv(["pip", "install", "--python", str(places.python_of(self.folder)), *arguments], what)

    def _uv(self, arguments: list[str], what: str) -> None:
        self._say(what)
        uv.uv(arguments, what, self._progress, self.folder.parent)

    def _say(self, sentence: str) -> None:
        self._progress(sentence)


def launch_of(path: Path, recipe: EnvironmentRecipe, freeze: tuple[str, ...]) -> Launch:
    """How a worker is started from a managed environment."""
    python = str(places.python_of(path))
    return Launch(python=python, env=recipe.env, environment=f"the environment {path.name} ({path})", freeze=freeze)


def fits(version: str, wanted: str) -> bool:
    """Whether ``X.Y`` satisfies a specifier such as ``>=3.11,<3.14``; understands ``>= > <= < == !=``."""
    number = tuple(int(part) for part in version.split("."))
    for part in "".join(wanted.split()).split(","):
        operator = part.rstrip("0123456789.*")
        bound = tuple(int(piece) for piece in part[len(operator) :].split(".")[:2] if piece.isdigit())
        outcome = {
            ">=": number >= bound,
            ">": number > bound,
            "<=": number <= bound,
            "<": number < bound,
            "==": number[: len(bound)] == bound,
            "!=": number[: len(bound)] != bound,
            "~=": number >= bound and number[:1] == bound[:1],
        }.get(operator)
        if outcome is None:
            raise ManagedEnvironmentError(f"the plugin asks for Python {wanted!r}, which is no version specifier")
        if not outcome:
            return False
    return True
