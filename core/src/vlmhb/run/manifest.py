"""``manifest.json``: with what and on what a run was made, so that its numbers can be traced and repeated."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

import vlmhb
from vlmhb.contract import CONTRACT_VERSION
from vlmhb.contract.backend import BackendInfo
from vlmhb.run.export import Summary
from vlmhb.run.folder import RunFolder
from vlmhb.run.keys import digest_file
from vlmhb.run.store import RunStore


class Manifest:
    """Collects facts while a run goes on and writes them at its end; facts of models loaded earlier are kept."""

    def __init__(self, home: RunFolder, config: Path, notes: Sequence[str]) -> None:
        self._home = home
        self._config = config
        self._notes = list(notes)
        self._started = _now()
        self._startup: dict[str, float] = {}
        self._loaded: dict[str, dict[str, Any]] = _earlier_models(home)

    def older_engines(self, engines: Iterable[BackendInfo]) -> list[str]:
        """Sentences about engines whose version is another than the one that stored answers were made with."""
        notes = []
        for info in engines:
            made = {m["engine_version"] for m in self._loaded.values() if m["backend"] == info.name}
            notes += [
                f"answers stored in this folder were made with {info.engine} {version}, and this is "
                f"{info.engine_version}; they are reused. Use --fresh to ask again."
                for version in sorted(filter(None, made - {info.engine_version}))
            ]
        return notes

    def took(self, step: str, seconds: float) -> None:
        """Note how long a step of this call took; the first time counts."""
        self._startup.setdefault(step, round(seconds, 3))

    def loaded(
        self, model_name: str, info: BackendInfo, facts: dict[str, Any], startup: dict[str, Any], log: Path
    ) -> None:
        """Note a model that was loaded, where the time went until then, and the log of its worker.

        The dictionary of times may still grow. The log is the model's own, also of two with one name.
        """
        name = str(log.relative_to(self._home.path))
        self._loaded[name] = {
            "backend": info.name,
            "model_name": model_name,
            "engine": info.engine,
            "engine_version": info.engine_version,
            "facts": facts,
            "startup": startup,
            "log": name,
            "loaded_at": _now(),
        }

    def write(self, store: RunStore, summary: Summary, *, interrupted: bool) -> None:
        """Write the file."""
        content = {
            "vlmhb": vlmhb.__version__,
            "contract": CONTRACT_VERSION,
            "started_at": self._started,
            "finished_at": _now(),
            "interrupted": interrupted,
            "startup": self._startup,
            "rows": {"ok": summary.ok, "error": summary.errors, "missing": summary.missing},
            "config": {"file": str(self._config.absolute()), "sha256": digest_file(self._config)},
            "notes": self._notes,
            "jobs": _with_scoring(store.jobs().values(), summary),
            "dataset_digests": store.dataset_digests(),
            "models": list(self._loaded.values()),
            "machine": machine(),
            "environment": environment(),
        }
        _write(self._home, content)


def machine() -> dict[str, Any]:
    """The hardware and system this process runs on."""
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "python": sys.version.split()[0],
    }


@cache
def environment() -> dict[str, str]:
    """Every installed distribution of this environment with its version, as they are when it is first asked."""
    from importlib.metadata import distributions

    read = [dist.metadata for dist in distributions()]  # once each: name and version would read the file twice
    found = {about["Name"]: about["Version"] for about in read}
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:  # noqa: PTH123 - a kernel file, not a path of ours
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor()


def config_of(home: RunFolder) -> Path | None:
    """The config that a folder's run was made from, or None where there is no run."""
    try:
        return Path(_read(home)["config"]["file"])
    except (OSError, msgspec.DecodeError, KeyError, TypeError):
        return None


def note_scoring(home: RunFolder, summary: Summary) -> None:
    """Write into the manifest with which metrics and normalisers the exports were made the last time."""
    try:
        content = _read(home)
        content["jobs"] = _with_scoring(content["jobs"], summary)
    except (OSError, msgspec.DecodeError, KeyError, TypeError, ValueError):
        return  # a run that was killed before its end has none
    content["rows"] = {"ok": summary.ok, "error": summary.errors, "missing": summary.missing}
    _write(home, content)


def _with_scoring(jobs: Iterable[dict[str, Any]], summary: Summary) -> list[dict[str, Any]]:
    """Jobs with the metrics, their signatures and the normalisers that they were scored with the last time."""
    chosen = ("metrics", "normalize", "signatures")
    pairs = zip(jobs, summary.jobs, strict=True)
    return [{**job, **{name: scored.job[name] for name in chosen}} for job, scored in pairs]


def _earlier_models(home: RunFolder) -> dict[str, dict[str, Any]]:
    try:
        return {model["log"]: model for model in _read(home)["models"]}
    except (OSError, msgspec.DecodeError, KeyError, TypeError):
        return {}


def _read(home: RunFolder) -> Any:
    return msgspec.json.decode(home.manifest.read_bytes())


def _write(home: RunFolder, content: Any) -> None:
    home.replace_text(home.manifest, msgspec.json.format(msgspec.json.encode(content), indent=1).decode() + "\n")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
