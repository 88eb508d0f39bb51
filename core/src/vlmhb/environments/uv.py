"""Calling uv and Python children: output to the progress display, failures in words."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import msgspec

from vlmhb.environments.inside import Outcome
from vlmhb.environments.places import Progress
from vlmhb.errors import ManagedEnvironmentError

TICK = 5.0
"""Seconds between two words about a command that says nothing."""
_DISK_FULL = ("no space left on device", "os error 28", "errno 28", "disk quota exceeded")
_CHATTER = (" + ", " - ", " ~ ", "Using ", "Creating ", "Activate ", "Uninstalled ")
_LINES_SHOWN = 15


def uv(arguments: list[str], what: str, progress: Progress, folder: Path) -> None:
    """Run uv.

    Args:
        arguments: its arguments.
        what: what it does, for messages: ``installing vllm``.
        progress: gets uv's own lines, and now and then how much disk is taken.
        folder: the folder it works in; also tells the disk to watch.

    Raises:
        ManagedEnvironmentError: it failed; with its last lines.
    """
    from uv import find_uv_bin

    env = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "CONDA_PREFIX")}
    lines: list[str] = []
    free = shutil.disk_usage(folder).free
    started = told = time.monotonic()
    with tempfile.TemporaryFile("w+b") as output:
        process = subprocess.Popen(
            [find_uv_bin(), *arguments], stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=env, cwd=folder
        )
        try:
            seen = 0
            while process.poll() is None or seen < os.fstat(output.fileno()).st_size:
                seen += _pass_lines(output.fileno(), seen, lines, progress)
                if process.returncode is None:
                    time.sleep(0.05)
                if time.monotonic() - told > TICK:
                    told = time.monotonic()
                    taken = max(0, free - shutil.disk_usage(folder).free)
                    progress(f"{what}: {told - started:.0f} s, {size(taken)} of disk taken so far")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if process.returncode:
        raise failure(f"{what} failed", "\n".join(lines))


def _pass_lines(number: int, start: int, lines: list[str], progress: Progress) -> int:
    """Pass whole new lines of a file on; returns how many bytes they took."""
    data = os.pread(number, 1 << 20, start)
    end = data.rfind(b"\n") + 1 or len(data)
    for line in data[:end].decode(errors="replace").splitlines():
        if line.strip() and not line.startswith(_CHATTER):
            lines.append(line.rstrip())
            progress(line.strip())
    return end


def failure(what: str, output: str) -> ManagedEnvironmentError:
    """The error for a failed child, with the end of what it printed."""
    if any(words in output.lower() for words in _DISK_FULL):
        return ManagedEnvironmentError(f"{what}: the disk is full. Make room, then run the command again.")
    shown = "\n".join(f"    {line}" for line in output.strip().splitlines()[-_LINES_SHOWN:])
    return ManagedEnvironmentError(f"{what}:\n{shown}" if shown else f"{what}.")


def python(python: Path, arguments: list[str], what: str, env: dict[str, str] | None = None) -> None:
    """Run an environment's Python and expect success.

    Raises:
        ManagedEnvironmentError: it failed; with the end of its output.
    """
    dropped = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    values = {name: value for name, value in os.environ.items() if name not in dropped} | (env or {})
    try:
        done = subprocess.run(
            [str(python), "-P", *arguments], stdin=subprocess.DEVNULL, capture_output=True, env=values, check=False
        )
    except OSError as error:
        raise ManagedEnvironmentError(f"{what}: {python} cannot be run: {error.strerror}.") from error
    if done.returncode:
        raise failure(what, (done.stdout + done.stderr).decode(errors="replace"))


def ask_inside(path: Path, *arguments: str, env: dict[str, str] | None = None) -> Outcome:
    """Run :mod:`vlmhb.environments.inside` with a Python executable and return what it found.

    Args:
        path: the executable.
        arguments: what to do.
        env: environment variables that the environment's recipe sets.

    Raises:
        ManagedEnvironmentError: it could not be run, or says what is wrong.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out.json")
        python(
            path, ["-m", "vlmhb.environments.inside", *arguments, str(out)], f"looking into {path.parent.parent}", env
        )
        outcome = msgspec.json.decode(out.read_bytes(), type=Outcome)
    if outcome.error is not None:
        raise ManagedEnvironmentError(outcome.error)
    return outcome


def size(count: int) -> str:
    """``1.5 GB``, or ``12 MB`` for less than a tenth of one."""
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.0f} MB"
