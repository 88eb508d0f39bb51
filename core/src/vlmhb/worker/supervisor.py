"""The process between vlmhb and a worker: it ends with its parent, and takes everything below it along.

It is run as a script, so it imports the standard library only, and starts in a few milliseconds. Engines start
processes that leave their session and their parent; on Linux the supervisor is the *subreaper* of all of them
(``prctl(2)``), so that an orphan becomes its child instead of init's, and can be found and killed.

Lines on the control socket, parent to supervisor: ``end SECONDS`` (end all politely within that time, then by
force). The socket's end of file, or another parent process id, means that the parent is gone.
Supervisor to parent: ``started PID``, ``failed REASON``, ``exit CODE`` (negative: the signal), ``gone``.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

TICK = 0.5
"""Seconds between two looks at the parent's process id."""
NOTE_EVERY = 2.0
"""Seconds between two looks at the shared-memory files of the group, and at the size of its log."""
LOG_LIMIT = 64 << 20
"""Bytes above which the log, which is standard output, loses its older part."""
ORPHAN_GRACE = 1.0
"""Seconds that the processes get to end by themselves when the parent or the worker is gone."""
SHARED_MEMORY = Path("/dev/shm")
SHARED_MEMORY_NAMES = ("psm_", "sglang_", "vllm", "torch_", "nccl-", "sem.", "loky", "vlmhb_")
"""Beginnings of the names that engines and their libraries give to shared-memory files."""

_PR_SET_CHILD_SUBREAPER = 36


def process_parents() -> dict[int, int]:
    """Process id -> parent's process id, for every process that can be seen."""
    parents: dict[int, int] = {}
    if not Path("/proc/self/stat").exists():  # not Linux
        listing = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=False).stdout
        for line in listing.splitlines():
            pid, parent = line.split()
            parents[int(pid)] = int(parent)
        return parents
    for name in os.listdir("/proc"):  # noqa: PTH208 - a Path for every process would only cost time
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                stat = Path("/proc", name, "stat").read_bytes()
                parents[int(name)] = int(stat[stat.rindex(b")") + 2 :].split()[1])
    return parents


def descendants(pid: int) -> list[int]:
    """Process ids of a process's children, their children and so on; zombies are among them."""
    children: dict[int, list[int]] = {}
    for child, parent in process_parents().items():
        children.setdefault(parent, []).append(child)
    found: list[int] = []
    todo = [pid]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def send_signal(pids: list[int], number: int) -> None:
    """Signal processes; one that is gone already is no error."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def kill_descendants(pid: int, seconds: float = 5.0) -> None:
    """Kill everything below a process by force, again and again until nothing new appears."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        below = [child for child in descendants(pid) if not _is_zombie(child)]
        if not below:
            return
        send_signal(below, signal.SIGKILL)
        time.sleep(0.02)


def _is_zombie(pid: int) -> bool:
    """Whether a process has ended and only waits for its parent; outside Linux nobody is taken for one."""
    try:
        stat = Path("/proc", str(pid), "stat").read_bytes()
    except OSError:
        return sys.platform == "linux"
    return stat[stat.rindex(b")") + 2 :].split()[0] in (b"Z", b"X")


class SharedMemoryFiles:
    """The shared-memory files that a group of processes makes, so that none outlives the group.

    A file is removed when it is new since the start, belongs to this user, is not in use by any process, and was
    either seen in use by the group or has a name that engines give.
    """

    def __init__(self) -> None:
        self._before = self._listing()
        self._seen: set[str] = set()

    def note(self, pids: list[int]) -> None:
        """Remember the new files that these processes have mapped or open."""
        new = {name: number for name, number in self._listing().items() if name not in self._before}
        if new.keys() - self._seen:
            used = self._used_by(pids)
            self._seen |= {name for name, number in new.items() if number in used}

    def remove(self) -> list[str]:
        """Remove what is left of the group's files and return their names.

        Another program's file may be in use by nobody for a moment (while its name is on the way to a reader), so
        a file must be unused at two looks.
        """
        left = self._unused()
        if left:
            time.sleep(0.3)
            left &= self._unused()
        removed = []
        for name in sorted(left):
            with contextlib.suppress(OSError):
                if (SHARED_MEMORY / name).stat().st_uid == os.getuid():
                    (SHARED_MEMORY / name).unlink()
                    removed.append(name)
        return removed

    def _unused(self) -> set[str]:
        ours = {
            name: number
            for name, number in self._listing().items()
            if name not in self._before and (name in self._seen or name.startswith(SHARED_MEMORY_NAMES))
        }
        used = self._used_by(list(process_parents())) if ours else set()
        return {name for name, number in ours.items() if number not in used}

    def _listing(self) -> dict[str, int]:
        """File name -> inode number. A semaphore is mapped under another name than the one it is then given."""
        found: dict[str, int] = {}
        for path in SHARED_MEMORY.iterdir() if SHARED_MEMORY.is_dir() else ():
            with contextlib.suppress(OSError):
                found[path.name] = path.stat().st_ino
        return found

    def _used_by(self, pids: list[int]) -> set[int]:
        """Inode numbers of the shared-memory files that these processes have mapped or open."""
        prefix = f"{SHARED_MEMORY}/"
        used: set[int] = set()
        for pid in pids:
            with contextlib.suppress(OSError):
                for line in Path("/proc", str(pid), "maps").read_text(errors="replace").splitlines():
                    if prefix in line:
                        used.add(int(line.split(maxsplit=5)[4]))  # address, rights, offset, device, inode, name
            with contextlib.suppress(OSError):
                for link in Path("/proc", str(pid), "fd").iterdir():
                    with contextlib.suppress(OSError):
                        if str(link.readlink()).startswith(prefix):
                            used.add(link.stat().st_ino)
        return used


def cut_log(limit: int = LOG_LIMIT) -> None:
    """Keep only the last ``limit / 2`` bytes of a log that has grown above ``limit``.

    All who write to it write at its end (``O_APPEND``), so it may become shorter under their hands. What is written
    in the moment of the cut is lost, so none is made once the worker has ended: the owner then reads the last words.
    """
    with contextlib.suppress(OSError):  # a full disk, or no file at all
        size = os.fstat(1).st_size
        if size > limit:
            first = f"(the log had {size} bytes; older lines were dropped)\n"
            kept = first.encode() + os.pread(1, limit // 2, size - limit // 2).partition(b"\n")[2]
            os.ftruncate(1, 0)
            os.write(1, kept)


class Supervisor:
    """Starts the worker, watches it and the parent, and leaves nothing behind."""

    def __init__(self, control: socket.socket, parent: int) -> None:
        self._control = control
        self._parent = parent
        self._files = SharedMemoryFiles()
        self._worker: int | None = None
        self._wake, wake_write = os.pipe()
        os.set_blocking(wake_write, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)

    def run(self, command: list[str], keep: list[int]) -> None:
        """Start the worker and return when it and everything below it is gone."""
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=keep, start_new_session=True, close_fds=True
            )
        except OSError as error:
            self._say(f"failed {error}")
            return
        self._worker = process.pid
        self._say(f"started {process.pid}")
        for number in keep:  # the worker's end of its socket must be held by the worker alone
            os.close(number)
        grace = self._watch()
        self._end(grace)
        self._files.remove()
        self._say("gone")

    def _watch(self) -> float:
        """Wait for the worker's or the parent's end, or the parent's order; returns the grace period."""
        next_note = time.monotonic() + NOTE_EVERY
        while True:
            control = self._control.fileno()
            ready, _, _ = select.select([control, self._wake], [], [], TICK)
            if self._wake in ready:
                os.read(self._wake, 4096)
            self._reap_all()
            if self._worker is None:
                return ORPHAN_GRACE
            if control in ready:
                try:
                    order = self._control.recv(4096).decode()
                except ConnectionError:
                    order = ""
                return float(order.split()[1]) if order.startswith("end ") else ORPHAN_GRACE
            if os.getppid() != self._parent:
                return ORPHAN_GRACE
            if time.monotonic() > next_note:
                self._files.note(descendants(os.getpid()))
                cut_log()
                next_note = time.monotonic() + NOTE_EVERY

    def _end(self, grace: float) -> None:
        """Terminate, wait, kill; then wait until everything is reaped."""
        below = descendants(os.getpid())
        self._files.note(below)
        send_signal(below, signal.SIGTERM)
        send_signal(below, signal.SIGCONT)
        deadline = time.monotonic() + grace
        while time.monotonic() < deadline and self._reap_all():
            time.sleep(0.02)
        while self._reap_all():
            send_signal(descendants(os.getpid()), signal.SIGKILL)
            time.sleep(0.02)

    def _reap_all(self) -> bool:
        """Collect ended children; returns whether any child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._worker:
                self._worker = None
                self._say(f"exit {os.waitstatus_to_exitcode(status)}")

    def _say(self, line: str) -> None:
        with contextlib.suppress(OSError):
            self._control.sendall(line.encode() + b"\n")


def become_subreaper() -> None:
    """Become the parent of every orphan below this process (Linux; elsewhere nothing happens)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--control", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--keep", type=int, action="append", default=[])
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, lambda *_: None)  # a handler, since SIG_IGN would be inherited by the worker
    become_subreaper()
    Supervisor(socket.socket(fileno=args.control), args.parent).run(args.command, args.keep)
    os._exit(0)


if __name__ == "__main__":
    main()
