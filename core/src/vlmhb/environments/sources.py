"""Where the core and a backend's plugin are installed from: folders of a source checkout, or package names."""

from __future__ import annotations

import difflib
import hashlib
from pathlib import Path
from typing import Literal

import msgspec

from vlmhb import __version__
from vlmhb.discovery.origin import origin
from vlmhb.errors import ManagedEnvironmentError

OFFICIAL = {"hf": "vlmhb-hf", "vllm": "vlmhb-vllm", "sglang": "vlmhb-sglang"}
"""Backends of this project and their distributions."""

_NO_SOURCE = {"__pycache__", ".git", ".mypy_cache", ".ruff_cache", ".pytest_cache", "build", "dist"}


class Source(msgspec.Struct, frozen=True):
    """One distribution to install.

    Attributes:
        kind: a ``folder`` to copy, a folder to use in place (``editable``), or a ``requirement`` for the index.
        value: the folder's path or the requirement.
        digest: of what a folder held when it was installed, so that a change is noticed.
    """

    kind: Literal["folder", "editable", "requirement"]
    value: str
    digest: str = ""

    @classmethod
    def of(cls, value: str | Path, editable: bool = False) -> Source:
        """A source from what a user wrote: an existing path, or a requirement."""
        path = Path(value).expanduser()
        if not path.exists():
            return cls("requirement", str(value))
        if path.is_dir() and not (path / "pyproject.toml").is_file():
            raise ManagedEnvironmentError(f"{path} is no plugin: it has no pyproject.toml.")
        kind: Literal["folder", "editable"] = "editable" if editable else "folder"
        return cls(kind, str(path.absolute()), _digest(path, kind))

    def arguments(self) -> list[str]:
        """The arguments of ``uv pip install``."""
        return ["--editable", self.value] if self.kind == "editable" else [self.value]

    def problem(self) -> str | None:
        """Why what was installed is out of date, or None."""
        path = Path(self.value)
        if self.kind == "requirement" or (self.kind == "folder" and not path.exists()):
            return None
        if not path.exists():
            return f"its source folder {path} is gone"
        return None if _digest(path, self.kind) == self.digest else f"{path} has changed since"


def _digest(path: Path, kind: str) -> str:
    """Of a copied folder all its files count; of one used in place only the metadata that installing fixes."""
    if kind == "editable":
        files = [path / "pyproject.toml"]
    elif path.is_file():
        files = [path]
    else:
        found = (file for file in path.rglob("*") if not _NO_SOURCE.intersection(file.relative_to(path).parts))
        files = sorted(file for file in found if file.is_file())
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(path.parent)}\0".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def core_source() -> Source:
    """How this vlmhb was installed, as the source for the others."""
    found = origin()
    return Source.of(*found) if found else Source("requirement", f"vlmhb=={__version__}")


def plugin_source(backend: str, plugin: str | None, core: Source) -> Source:
    """Where a backend's plugin comes from.

    Args:
        backend: the backend's name.
        plugin: what the user said (a folder, a wheel or a requirement), or None.
        core: the core's source; next to a source checkout's core lies ``plugins/vlmhb-<backend>``.

    Raises:
        ManagedEnvironmentError: the plugin is no plugin, or the backend is none of this project and no plugin is given:
            a mistyped name must not install whatever an index has under it.
    """
    if plugin is not None:
        return Source.of(plugin)
    if backend not in OFFICIAL:
        near = difflib.get_close_matches(backend, OFFICIAL, n=1)
        meant = f" Did you mean {near[0]}?" if near else ""
        raise ManagedEnvironmentError(
            f"vlmhb has no engine {backend!r}.{meant} It has {', '.join(OFFICIAL)}; "
            f"another one needs its plugin: vlmhb env create {backend} --plugin PATH|REQUIREMENT."
        )
    name = OFFICIAL[backend]
    beside = Path(core.value).parent / "plugins" / name
    if core.kind != "requirement" and beside.is_dir():
        return Source.of(beside, editable=core.kind == "editable")
    return Source("requirement", name)
