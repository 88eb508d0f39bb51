"""How much memory this machine has, or the container on it, and how much is free for further processes."""

from __future__ import annotations

from pathlib import Path

_GROUP = Path("/sys/fs/cgroup")
_GIVES_WAY = ("active_file", "inactive_file")


def total_memory(group: Path = _GROUP) -> int:
    """Bytes of the machine, or what the container may take where that is less.

    Args:
        group: folder of the control group (version 2).
    """
    import psutil  # type: ignore[import-untyped]

    return min([int(psutil.virtual_memory().total), *_limits(group)])


def free_memory(group: Path = _GROUP) -> int:
    """Bytes that can be taken without pushing anything out: of the machine, or of the container where that has less.

    Args:
        group: folder of the control group (version 2).
    """
    import psutil

    return min([int(psutil.virtual_memory().available), *_left(group)])


def _limits(group: Path) -> list[int]:
    """The control group's limit; empty where it has none."""
    try:
        most = (group / "memory.max").read_text(encoding="ascii").strip()
    except OSError:
        return []
    return [] if most == "max" else [int(most)]


def _left(group: Path) -> list[int]:
    """What the control group has left, files that the system merely keeps in memory included; empty without a limit."""
    try:
        used, stat = ((group / f"memory.{name}").read_text(encoding="ascii") for name in ("current", "stat"))
    except OSError:
        return []
    fields = dict(line.split() for line in stat.splitlines())
    kept = sum(int(fields.get(name, 0)) for name in _GIVES_WAY)
    return [max(0, most - int(used) + kept) for most in _limits(group)]
