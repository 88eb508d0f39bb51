"""The rows of the compatibility matrix: families by the config of their architecture, in ``families.json``."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from vlmhb.config.names import suggestion
from vlmhb.errors import ConfigError


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One family.

    Attributes:
        name: what people call it.
        config: the config.json from which its twin is made; what it leaves out is transformers' default.
        trust_remote_code: whether the twin's folder brings code, which must be run: transformers has no class for it.
        explained: name of an implementation (``vllm native``) -> why its tokens are not those of hf, in a sentence.
    """

    name: str
    config: dict[str, Any]
    trust_remote_code: bool = False
    explained: dict[str, str] = {}

    @property
    def architecture(self) -> str:
        """The model's class."""
        return str(self.config["architectures"][0])


def rows(names: tuple[str, ...] = ()) -> list[Row]:
    """All rows, or those that are named.

    Raises:
        ConfigError: there is no such row.
    """
    data = resources.files("vlmhb.doctor").joinpath("families.json").read_bytes()
    known = {row.name: row for row in msgspec.json.decode(data, type=list[Row])}
    for name in names:
        if name not in known:
            raise ConfigError(f"there is no family {name!r} in the matrix. {suggestion(name, known)}")
    return [known[name] for name in names] if names else list(known.values())


def write_config(row: Row, folder: Path) -> Path:
    """Make a folder that holds a row's config and nothing else; returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_bytes(msgspec.json.format(msgspec.json.encode(row.config), indent=2))
    return folder
