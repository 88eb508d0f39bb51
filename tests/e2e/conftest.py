"""An environment with the scripted engine under the names of the real ones, and a way to run in it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.envs import CORE, SCRIPTED, SCRIPTED_NAMES, Env, make_env
from support.scripts import ScriptFile

Cli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session", autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No managed environments but those that a test makes, whatever has been made on this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VLMHB_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="session")
def named_env(tmp_path_factory: pytest.TempPathFactory) -> Env:
    """The core, and the scripted engine as ``scripted``, ``hf``, ``vllm`` and ``sglang``."""
    return make_env(tmp_path_factory.mktemp("envs") / "named", CORE, SCRIPTED, SCRIPTED_NAMES, editable=True)


@pytest.fixture
def script(tmp_path: Path) -> ScriptFile:
    """A script without rules: the engine repeats the question; ``rules`` replaces them."""
    folder = tmp_path / "script"
    folder.mkdir()
    return ScriptFile(folder)


@pytest.fixture
def cli(named_env: Env, script: ScriptFile, tmp_path: Path) -> Cli:
    """``vlmhb`` with the scripted engine, checked for tracebacks; ends with the exit code that is expected."""

    def call(*arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = named_env.vlmhb(*map(str, arguments), check=False, VLMHB_SCRIPT=str(script.path))
        said = f"vlmhb {' '.join(map(str, arguments))} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr, said
        assert done.returncode == code, said
        return done

    return call
