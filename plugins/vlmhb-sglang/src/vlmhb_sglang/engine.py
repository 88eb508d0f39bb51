"""SGLang's engine, made fit to live in somebody else's process.

Imported only where a model is loaded: it imports SGLang.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import multiprocessing
import os
import signal
import tempfile
import threading
from collections.abc import Iterable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, ClassVar

import psutil
from sglang.srt.entrypoints.engine import Engine
from sglang.srt.managers.load_snapshot import shm_path_for

from vlmhb_sglang import children
from vlmhb_sglang.metrics import MetricsHome
from vlmhb_sglang.spawning import guarded_launch

_END_SECONDS = 10.0


class LaunchError(Exception):
    """The engine did not start; the message is the engine's own reason."""


class HostedEngine(Engine):
    """An engine that ends neither its host nor its host's other children.

    SGLang's own kills the whole process when one of its children fails, and all children of the process when it is
    shut down. Here the end of a child is something to be noticed (:attr:`processes`).

    Attributes:
        processes: the engine's processes, while it runs.
    """

    start_method: ClassVar[str] = "spawn"
    _loads: ClassVar[Path | None] = None
    """Where the scheduler that was started last publishes its load, a name in shared memory."""

    def __init__(self, **arguments: Any) -> None:
        """Start the engine.

        Args:
            arguments: those of ``sglang.Engine``.

        Raises:
            LaunchError: it did not start; nothing of it is left running.
        """
        self.processes: tuple[BaseProcess, ...] = ()
        self._metrics = MetricsHome()
        self._report = _new_report()
        self._quit_handler = signal.getsignal(signal.SIGQUIT)
        before = set(multiprocessing.active_children())
        try:
            if arguments.get("enable_multimodal"):
                _take_ready_images()
            with guarded_launch():
                super().__init__(**arguments)
        except Exception as error:  # SGLang and the model's own code run in there, and may raise anything
            self.processes = tuple(set(multiprocessing.active_children()) - before)
            end(self.processes)
            _forget(self._loads)
            reason = self.reason(error)
            self.shutdown()
            raise LaunchError(reason) from error
        self.processes = tuple(set(multiprocessing.active_children()) - before)
        # It would signal this process when a child ends; whoever watches the processes does better.
        self.tokenizer_manager._subprocess_watchdog.stop()
        _forget(self._loads)

    @classmethod
    def _launch_scheduler_processes(cls, server_args: Any, port_args: Any, *_: Any, **kwargs: Any) -> Any:
        multiprocessing.set_start_method(cls.start_method, force=True)
        HostedEngine._loads = Path(shm_path_for(port_args.instance_id))
        target = functools.partial(children.run_scheduler, dict(os.environ))
        return super()._launch_scheduler_processes(server_args, port_args, target, **kwargs)

    @classmethod
    def _launch_detokenizer_subprocesses(cls, server_args: Any, port_args: Any, **_: Any) -> Any:
        target = functools.partial(children.run_detokenizer, dict(os.environ))
        return super()._launch_detokenizer_subprocesses(server_args, port_args, target)

    def reason(self, error: BaseException | None = None) -> str:
        """Why the engine failed: what its processes reported, else the words of an exception."""
        told = self._report.read_text(encoding="utf-8").strip().splitlines() if self._report.exists() else []
        if told:
            return told[0]
        if error is None:
            return "one of its processes ended without a word; the log may say more"
        words = " ".join(str(error).split())
        return f"{type(error).__name__}: {words}" if words else type(error).__name__

    def shutdown(self) -> None:
        """End the engine's processes and give back what they used; safe to call again."""
        if not self._report.exists():
            return
        end(self.processes)
        self.processes = ()
        manager = self.tokenizer_manager
        if manager is not None:
            for socket in (self.send_to_rpc, manager.recv_from_detokenizer, manager.send_to_scheduler):
                socket.context.destroy(linger=0)
            # Some of SGLang's processors lack what their own shutdown() wants to close.
            with contextlib.suppress(AttributeError):
                manager.mm_processor.shutdown()
            manager.cuda_vmm_feature_transport.shutdown()
            for name in _ipc_names(self.port_args):
                Path(name.removeprefix("ipc://")).unlink(missing_ok=True)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGQUIT, self._quit_handler)
        self._metrics.clear()
        self._report.unlink()
        atexit.unregister(self.shutdown)


class ForkedEngine(HostedEngine):
    """The same, its processes made by the fork server."""

    start_method: ClassVar[str] = "forkserver"


def _take_ready_images() -> None:
    """For models with pictures only: SGLang's processors are many modules to import."""
    from vlmhb_sglang.ready import take_ready_images

    take_ready_images()


def end(processes: Iterable[BaseProcess]) -> None:
    """Kill processes with all their children and wait until they are gone."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            family = [psutil.Process(process.pid)]
            family.extend(family[0].children(recursive=True))
            for member in family:
                with contextlib.suppress(psutil.NoSuchProcess):
                    member.kill()
    for process in processes:
        process.join(_END_SECONDS)


def _forget(loads: Path | None) -> None:
    """Remove the name of the scheduler's load, which is for a server that is not used.

    Its owners keep their mapping, and none of them could remove the name when it is killed.
    """
    if loads is not None:
        loads.unlink(missing_ok=True)


def _ipc_names(port_args: Any) -> list[str]:
    return [value for value in vars(port_args).values() if isinstance(value, str) and value.startswith("ipc://")]


def _new_report() -> Path:
    handle, name = tempfile.mkstemp(prefix="vlmhb-sglang-")
    os.close(handle)
    os.environ[children.REPORT] = name
    return Path(name)
