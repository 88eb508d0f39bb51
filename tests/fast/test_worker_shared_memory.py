"""A worker's end removes the shared-memory files of its own processes, and nobody else's."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from multiprocessing import shared_memory
from pathlib import Path

import pytest
from vlmhb.worker.supervisor import SHARED_MEMORY, SharedMemoryFiles

pytestmark = pytest.mark.skipif(not SHARED_MEMORY.is_dir(), reason="this system has no /dev/shm")

MAKE = """
import _multiprocessing, os, signal, sys
name = f"/vlmhb-test-{os.getpid()}"
semaphore = _multiprocessing.SemLock(1, 1, 1, name, False)  # unlike multiprocessing's, nothing removes it
print(name, flush=True)
"""
MAKE_AND_DIE = MAKE + "os.kill(os.getpid(), signal.SIGKILL)"
MAKE_AND_WAIT = MAKE + "sys.stdin.read()"


def semaphore_file(name: str) -> Path:
    return SHARED_MEMORY / f"sem.{name.strip().removeprefix('/')}"


def test_a_semaphore_that_another_program_holds_stays():
    files = SharedMemoryFiles()
    lock = multiprocessing.get_context("spawn").Lock()
    file = semaphore_file(lock._semlock.name)
    assert file.exists()
    assert file.name not in files.remove()
    assert file.exists()


def test_a_block_of_memory_that_another_program_holds_stays():
    files = SharedMemoryFiles()
    block = shared_memory.SharedMemory(create=True, size=64)
    try:
        assert block.name not in files.remove()
        assert (SHARED_MEMORY / block.name).exists()
    finally:
        block.close()
        block.unlink()


def test_what_a_dead_process_left_goes():
    files = SharedMemoryFiles()
    child = subprocess.run([sys.executable, "-c", MAKE_AND_DIE], stdout=subprocess.PIPE, text=True, check=False)
    file = semaphore_file(child.stdout)
    assert file.exists()
    assert file.name in files.remove()
    assert not file.exists()


def test_a_file_of_the_group_is_known_by_its_use_whatever_its_name(monkeypatch):
    monkeypatch.setattr("vlmhb.worker.supervisor.SHARED_MEMORY_NAMES", ())
    files = SharedMemoryFiles()
    with subprocess.Popen(
        [sys.executable, "-c", MAKE_AND_WAIT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        file = semaphore_file(child.stdout.readline())
        files.note([child.pid])
        assert file.name not in files.remove()
        child.kill()
    assert file.name in files.remove()
