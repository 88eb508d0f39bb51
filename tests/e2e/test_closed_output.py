"""Commands whose output nobody reads to its end: ``vlmhb ... | head -1``, ``vlmhb ... 2>&-``."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from support.envs import Env
from support.scripts import ScriptFile

from .conftest import Cli
from .test_run import make_config, make_dataset

COMMANDS = (
    ["--help"],
    ["backends"],
    ["backends", "--json"],
    ["env", "list"],
    ["run", "--help"],
    ["dataset", "show", "d"],
)


def unread(env: Env, *arguments: str, closed: tuple[str, ...], **environ: str) -> subprocess.CompletedProcess[str]:
    """Run ``vlmhb`` with streams that are pipes without a reader; the other one is captured."""
    reader, writer = os.pipe()
    os.close(reader)
    streams = {name: writer if name in closed else subprocess.PIPE for name in ("stdout", "stderr")}
    command = [str(env.path / "bin" / "vlmhb"), *arguments]
    try:
        return subprocess.run(command, env={**os.environ, **environ}, text=True, check=False, **streams)  # type: ignore[call-overload,no-any-return]
    finally:
        os.close(writer)


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_reader_that_is_gone_ends_a_command_quietly(
    named_env: Env, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(make_dataset(tmp_path / "d", 3).parent)
    done = unread(named_env, *arguments, closed=("stdout",))
    assert (done.returncode, done.stderr) == (1, "")
    assert unread(named_env, *arguments, closed=("stdout", "stderr")).returncode == 1


def test_an_error_that_nobody_reads_is_no_error_of_its_own(named_env: Env) -> None:
    done = unread(named_env, "backends", "nope", closed=("stderr",))
    assert (done.returncode, done.stdout) == (1, "")
    assert "no backend 'nope'" in unread(named_env, "backends", "nope", closed=("stdout",)).stderr


@pytest.mark.slow
def test_a_run_that_nobody_watches_any_more_can_go_on(
    tmp_path: Path, cli: Cli, named_env: Env, script: ScriptFile
) -> None:
    make_dataset(tmp_path / "dataset", 6)
    config, out = make_config(tmp_path, {}), tmp_path / "out"
    environ = {"VLMHB_SCRIPT": str(script.path)}
    run = ("run", str(config), "--out", str(out))
    assert unread(named_env, *run, closed=("stdout", "stderr"), **environ).returncode == 1
    done = unread(named_env, *run, closed=("stdout",), **environ)
    assert done.returncode == 1
    assert "Error" not in done.stderr
    assert "reused from before: 6" in cli(*run).stdout


def test_streams_that_the_shell_closed_are_no_matter(tmp_path: Path, named_env: Env, script: ScriptFile) -> None:
    make_dataset(tmp_path / "dataset", 3)
    config = make_config(tmp_path, {})
    command = f'"{named_env.path}/bin/vlmhb" run "{config}" --out "{tmp_path / "out"}" >&- 2>&-'
    environ = {**os.environ, "VLMHB_SCRIPT": str(script.path)}
    assert subprocess.run(["sh", "-c", command], env=environ, check=False).returncode == 0
    assert len(script.asked()) == 3
