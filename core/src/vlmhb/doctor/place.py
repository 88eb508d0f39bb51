"""Where a model's folder is, without fetching anything."""

from __future__ import annotations

import os
import re
from pathlib import Path

from vlmhb.contract.model import missing_model
from vlmhb.errors import ModelLoadError

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


def hub_cache() -> Path:
    """The folder in which ``huggingface_hub`` keeps models: ``$HF_HUB_CACHE``, ``$HF_HOME/hub`` or its default."""
    given = os.environ.get("HF_HUB_CACHE")
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "huggingface")
    return Path(given or Path(home, "hub")).expanduser()


def local_folder(model: str, revision: str | None = None) -> Path:
    """The folder of a model: the folder itself, or the snapshot of a hub id that is in the cache.

    Args:
        model: a folder, or a hub id (``organisation/name``).
        revision: branch, tag or commit of a hub id; ``main`` when left out.

    Raises:
        ModelLoadError: there is neither.
    """
    path = Path(model).expanduser()
    if path.exists():
        return path
    if not _HUB_ID.fullmatch(model):
        raise missing_model(model)
    kept = hub_cache() / f"models--{model.replace('/', '--')}"
    named = kept / "refs" / (revision or "main")
    commit = named.read_text(encoding="utf-8").strip() if named.is_file() else revision or "main"
    snapshot = kept / "snapshots" / commit
    if not snapshot.is_dir():
        raise ModelLoadError(
            f"there is no model folder {model}, and the hub's cache {hub_cache()} does not hold it either. Fetch it, "
            "or only what is small of it (its JSON files, its tokenizer and its code); weights are not needed here."
        )
    return snapshot
