"""How much memory of this machine is free for further processes."""

from __future__ import annotations

from pathlib import Path

_GROUP = Path("/sys/fs/cgroup")
_GIVES_WAY = ("active_file", "inactive_file")


def free_memory(group: Path = _GROUP) -> int:
    """Bytes that can be taken without pushing anything out: of the machine, or of the container where that has less.

    Args:
        group: folder of the control group (version 2).
    """
    import psutil  # type: ignore[import-untyped]

    free = int(psutil.virtual_memory().available)
    left = _left_in(group)
    return free if left is None else min(free, left)


def _left_in(group: Path) -> int | None:
    """What a control group has left, files that the system merely keeps in memory included; None without a limit."""
    try:
        most, used, stat = (
            (group / f"memory.{name}").read_text(encoding="ascii") for name in ("max", "current", "stat")
        )
    except OSError:
        return None
    if most.strip() == "max":
        return None
    fields = dict(line.split() for line in stat.splitlines())
    return max(0, int(most) - int(used) + sum(int(fields.get(name, 0)) for name in _GIVES_WAY))
