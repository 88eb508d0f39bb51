"""The file inside an environment that says what it is and exactly what was put into it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec

from vlmhb import __version__
from vlmhb.contract import CONTRACT_VERSION
from vlmhb.contract.backend import BackendInfo, EnvironmentRecipe
from vlmhb.environments.places import python_of
from vlmhb.environments.sources import Source

FILE = "vlmhb-environment.json"
FORMAT = 2


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What is recorded about a managed environment.

    Attributes:
        format: version of this file.
        backend, device: what it was made for.
        python: version of its Python.
        core, contract: versions of vlmhb and of the plugin contract in it.
        sources: the core and the plugin, in this order.
        asked_python, asked_plugin: what the user asked for, so that it can be made again in the same way.
        recipe: what the plugin wanted.
        info: what the backend said about itself when the environment was made.
        freeze: exact versions, one ``name==version`` each.
        packages: names of the metadata folders in site-packages, to notice later changes.
        created: time, in UTC.
        uv: version of uv.
    """

    format: int
    backend: str
    device: str
    python: str
    core: str
    contract: int
    sources: tuple[Source, Source]
    asked_python: str | None
    asked_plugin: str | None
    recipe: EnvironmentRecipe
    info: BackendInfo
    freeze: tuple[str, ...]
    packages: tuple[str, ...]
    created: str
    uv: str


def packages_in(path: Path) -> tuple[str, ...]:
    """Names of the metadata folders in an environment's site-packages, sorted."""
    return tuple(sorted(found.name for found in path.glob("lib/python*/site-packages/*.dist-info")))


def write(path: Path, record: Record) -> None:
    """Write the record and wait until it is on the disk; the environment counts as made from then on."""
    data = msgspec.json.format(msgspec.json.encode(record), indent=1)
    with (path / FILE).open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def read(path: Path) -> Record | str:
    """The record of an environment, or why there is none that can be used."""
    try:
        return msgspec.json.decode((path / FILE).read_bytes(), type=Record)
    except FileNotFoundError:
        return "it was not finished"
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        return f"its record {FILE} cannot be read ({error})"


def problem(path: Path, record: Record) -> str | None:
    """Why an environment must be made again, or None; looks at files only and takes milliseconds."""
    if record.format != FORMAT:
        return "it was made by another version of vlmhb"
    if not os.access(python_of(path), os.X_OK):
        return "its Python is gone"
    if record.core != __version__ or record.contract != CONTRACT_VERSION:
        return f"it was made for vlmhb {record.core} and this is {__version__}"
    for source in record.sources:
        if outdated := source.problem():
            return outdated
    changed = set(packages_in(path)) ^ set(record.packages)
    if changed:
        names = ", ".join(sorted(name.removesuffix(".dist-info") for name in changed)[:3])
        return f"packages were added, removed or changed since it was made ({names})"
    return None


def python_version() -> str:
    """``X.Y`` of the Python that runs this."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"
