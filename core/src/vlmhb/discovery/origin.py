"""Where this vlmhb was installed from, and so what brings its other packages: a source checkout has them beside it."""

from __future__ import annotations

import json
import shlex
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit


def origin() -> tuple[Path, bool] | None:
    """The folder or wheel that vlmhb was installed from, and whether it is used in place; None when an index had it."""
    found = metadata.distribution("vlmhb").read_text("direct_url.json")
    if not found:
        return None
    source = json.loads(found)
    path = Path(unquote(urlsplit(source["url"]).path))
    if not source["url"].startswith("file:") or not path.exists():
        return None
    return path, source.get("dir_info", {}).get("editable", False)


def pip_install(name: str) -> str:
    """The command that installs a package of this project here: ``vllm`` is ``vlmhb-vllm``."""
    source = origin()
    beside = source[0].parent / "plugins" / f"vlmhb-{name}" if source else None
    package = shlex.quote(str(beside)) if beside and beside.is_dir() else f"'vlmhb[{name}]'"
    return f"pip install {package}"


def how_to_get(name: str) -> str:
    """The commands that bring an official backend."""
    return f"vlmhb env create {name} (an environment of its own), or {pip_install(name)} (here)"
