"""The parts of managed environments that need no environment: names, sources, records, locks, versions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from click.testing import CliRunner
from support.envs import CORE, SCRIPTED
from vlmhb import BackendInfo, EnvironmentRecipe, __version__
from vlmhb.cli.app import app
from vlmhb.contract import CONTRACT_VERSION
from vlmhb.discovery import origin
from vlmhb.environments import manage, places, record, registered, sources, uv
from vlmhb.environments.create import create, fits
from vlmhb.environments.device import resolve_device
from vlmhb.environments.inside import Backend, Contents
from vlmhb.environments.sources import Source
from vlmhb.errors import ManagedEnvironmentError

INFO = BackendInfo(name="scripted", engine="engine", engine_version="1.0", devices=("cpu",))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own for each test."""
    monkeypatch.setenv("VLMHB_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def make_record(path: Path, **changes: object) -> record.Record:
    """A folder that looks like a managed environment, and its record."""
    (path / "bin").mkdir(parents=True)
    (path / "bin" / "python").symlink_to(sys.executable)
    packages = path / "lib" / "python3.11" / "site-packages"
    for name in ("engine-1.0.dist-info", "vlmhb-0.1.0.dist-info"):
        (packages / name).mkdir(parents=True)
    fields = {
        "format": record.FORMAT,
        "backend": "scripted",
        "device": "cpu",
        "python": "3.11.7",
        "core": __version__,
        "contract": CONTRACT_VERSION,
        "sources": (Source("requirement", "vlmhb==0.1.0"), Source("requirement", "vlmhb-scripted")),
        "asked_python": None,
        "asked_plugin": None,
        "recipe": EnvironmentRecipe(env={"A": "1"}),
        "info": INFO,
        "freeze": ("engine==1.0",),
        "packages": record.packages_in(path),
        "created": "2026-01-01T00:00:00+00:00",
        "uv": "0.13",
    }
    made = record.Record(**{**fields, **changes})
    record.write(path, made)
    return made


# --- places


def test_home_is_moved_by_the_variable(home, monkeypatch):
    assert places.environment_path("a-cpu") == home / "environments" / "a-cpu"
    monkeypatch.delenv("VLMHB_HOME")
    assert places.home().name == "vlmhb"


def test_lock_is_waited_for_and_the_wait_is_said(home):
    code = (
        "import sys, time\nfrom vlmhb.environments.places import locked\n"
        "with locked('x', print):\n    print('have it', flush=True)\n    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "have it\n"
        said: list[str] = []
        threading.Timer(0.7, lambda: os.kill(other.pid, signal.SIGKILL)).start()
        started = time.monotonic()
        with places.locked("x", said.append):
            assert time.monotonic() - started > 0.5
    assert said == [f"another process (process {other.pid}) works on x; waiting for it"]


def test_locks_of_different_environments_do_not_meet():
    with places.locked("x", pytest.fail), places.locked("y", pytest.fail):
        pass


def test_unusable_home_is_an_error_in_words(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("VLMHB_HOME", str(tmp_path / "file"))
    with pytest.raises(ManagedEnvironmentError, match="cannot be used: Not a directory"), places.locked("x", print):
        pass


# --- sources


def test_source_checkout_installs_what_lies_beside_it():
    core = sources.core_source()
    assert core.value == str(CORE)
    assert core.kind == "editable"
    assert sources.plugin_source("vllm", None, core).value == str(CORE.parent / "plugins" / "vlmhb-vllm")


def test_installed_packages_come_from_the_index():
    core = Source("requirement", "vlmhb==0.1.0")
    assert sources.plugin_source("sglang", None, core) == Source("requirement", "vlmhb-sglang")
    assert sources.plugin_source("x", "their-engine>=2", core) == Source("requirement", "their-engine>=2")


def test_plugin_folder_is_copied_and_its_changes_are_noticed(tmp_path):
    (tmp_path / "plugin" / "src").mkdir(parents=True)
    (tmp_path / "plugin" / "pyproject.toml").write_text("[project]")
    source = sources.plugin_source("x", str(tmp_path / "plugin"), Source("requirement", "vlmhb"))
    assert source.arguments() == [str(tmp_path / "plugin")]
    (tmp_path / "plugin" / "src" / "__pycache__").mkdir()
    (tmp_path / "plugin" / "src" / "__pycache__" / "a.pyc").write_text("x")
    assert source.problem() is None
    (tmp_path / "plugin" / "src" / "a.py").write_text("x")
    assert "has changed since" in source.problem()


def test_editable_folder_is_outdated_by_its_metadata_only(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project]")
    source = Source.of(tmp_path, editable=True)
    (tmp_path / "a.py").write_text("x")
    assert source.problem() is None
    (tmp_path / "pyproject.toml").write_text("[project]\nname='b'")
    assert "has changed since" in source.problem()
    (tmp_path / "pyproject.toml").unlink()
    with pytest.raises(ManagedEnvironmentError, match="has no pyproject"):
        Source.of(tmp_path)


def test_a_copied_folder_may_go_away_and_an_editable_one_may_not(tmp_path):
    assert Source("folder", str(tmp_path / "gone"), "x").problem() is None
    assert "is gone" in Source("editable", str(tmp_path / "gone"), "x").problem()


# --- records


def test_record_survives_writing(tmp_path):
    made = make_record(tmp_path / "env")
    assert record.read(tmp_path / "env") == made
    assert record.problem(tmp_path / "env", made) is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"core": "0.0.9"}, "made for vlmhb 0.0.9"),
        ({"contract": 0}, "made for vlmhb"),
        ({"format": 0}, "another version of vlmhb"),
        ({"packages": ("engine-0.9.dist-info",)}, "packages were added, removed or changed"),
    ],
)
def test_outdated_environment(tmp_path, changes, words):
    made = make_record(tmp_path / "env", **changes)
    assert words in record.problem(tmp_path / "env", made)


def test_environment_without_its_python(tmp_path):
    made = make_record(tmp_path / "env")
    (tmp_path / "env" / "bin" / "python").unlink()
    (tmp_path / "env" / "bin" / "python").symlink_to(tmp_path / "uninstalled")
    assert record.problem(tmp_path / "env", made) == "its Python is gone"


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff", b'{"format": "x"}'])
def test_half_made_environment_is_listed_with_its_problem(home, content):
    path = places.environment_path("vllm-cuda")
    path.mkdir(parents=True)
    if content is not None:
        (path / record.FILE).write_bytes(content)
    (found,) = manage.list_environments()
    assert (found.name, found.backends, found.device) == ("vllm-cuda", ("vllm",), "cuda")
    assert "not finished" in found.problem or "cannot be read" in found.problem
    with pytest.raises(ManagedEnvironmentError, match="vlmhb env create vllm --device cuda"):
        manage.find_environment("vllm", device="cuda")


def test_find_prefers_a_managed_environment_to_a_registered_one(home, tmp_path):
    backend = Backend("vlmhb-scripted", "0.1.0", INFO, None)
    contents = Contents(__version__, CONTRACT_VERSION, {"scripted": backend, "other": backend})
    entry = registered.Entry(path=str(tmp_path), python=sys.executable, contents=contents)
    places.environments_folder().mkdir(parents=True)
    registered.remember(entry)
    assert manage.find_environment("scripted", device="cpu").python == sys.executable
    make_record(places.environment_path("scripted-cpu"))
    found = manage.find_environment("scripted", device="cpu")
    assert found.python == str(home / "environments" / "scripted-cpu" / "bin" / "python")
    assert (found.env, found.freeze) == ({"A": "1"}, ("engine==1.0",))
    assert manage.find_environment("other", device="cpu").python == sys.executable
    assert manage.find_environment("nonesuch") is None


def test_registered_environment_of_another_version_is_not_used(tmp_path):
    contents = Contents("0.0.1", CONTRACT_VERSION, {"old": Backend("d", "1", None, None)})
    places.environments_folder().mkdir(parents=True)
    registered.remember(registered.Entry(path=str(tmp_path), python=sys.executable, contents=contents))
    with pytest.raises(ManagedEnvironmentError, match=r"holds vlmhb 0\.0\.1.*vlmhb env add"):
        manage.find_environment("old")
    manage.remove(str(tmp_path))
    assert manage.list_environments() == []


def test_damaged_register_is_an_error_in_words():
    places.environments_folder().mkdir(parents=True)
    (places.environments_folder() / "registered.json").write_text("[{]")
    with pytest.raises(ManagedEnvironmentError, match="is damaged"):
        manage.list_environments()


def test_remove_of_an_unknown_name_lists_the_known(home):
    make_record(places.environment_path("scripted-cpu"))
    with pytest.raises(ManagedEnvironmentError, match=r"no environment 'scripted'. There are: scripted-cpu"):
        manage.remove("scripted")
    manage.remove("scripted-cpu")
    assert manage.list_environments() == []
    with pytest.raises(ManagedEnvironmentError, match="There are: none"):
        manage.remove("../../etc")


# --- small decisions


@pytest.mark.parametrize(
    ("version", "wanted", "outcome"),
    [
        ("3.11", ">=3.11,<3.14", True),
        ("3.14", ">=3.11,<3.14", False),
        ("3.9", ">=3.11", False),
        ("3.12", "==3.12.*", True),
        ("3.12", "==3.12.4", True),
        ("3.12", "!=3.12", False),
        ("3.12", "~=3.11", True),
        ("3.12", ">3.12", False),
        ("3.12", " >= 3.10 , <= 3.12", True),
    ],
)
def test_python_versions(version, wanted, outcome):
    assert fits(version, wanted) is outcome


def test_nonsense_as_python_version():
    with pytest.raises(ManagedEnvironmentError, match="no version specifier"):
        fits("3.11", "new")


def test_devices():
    assert resolve_device("cpu") == "cpu"
    assert resolve_device("cuda") == "cuda"
    assert resolve_device("auto") in ("cpu", "cuda")
    with pytest.raises(ManagedEnvironmentError, match="auto, cpu or cuda"):
        create("scripted", device="tpu")


def test_full_disk_is_recognised_in_the_words_of_a_child():
    output = "error: Failed to install\n  Caused by: failed to copy\n  Caused by: No space left on device (os error 28)"
    assert "the disk is full" in str(uv.failure("installing x failed", output))
    assert "  Caused by" in str(uv.failure("installing x failed", "  Caused by: the network"))


@pytest.mark.parametrize(("engine", "says"), [("vlm", "Did you mean vllm?"), ("nonesuch", "It has hf, vllm, sglang;")])
def test_an_engine_that_nobody_knows_is_refused_before_anything_is_made(tmp_path, monkeypatch, engine, says):
    monkeypatch.setenv("VLMHB_HOME", str(tmp_path / "home"))
    done = CliRunner().invoke(app, ["env", "create", engine])
    assert done.exit_code == 2
    assert f"no engine '{engine}'" in done.output
    assert says in done.output
    assert "--plugin" in done.output
    assert not (tmp_path / "home").exists()


def test_packages_of_this_project_are_installed_from_where_it_came_from(tmp_path, monkeypatch):
    assert origin.pip_install("vllm") == f"pip install {CORE.parent / 'plugins' / 'vlmhb-vllm'}"
    assert origin.pip_install("none-of-ours") == "pip install 'vlmhb[none-of-ours]'"
    core = tmp_path / "a clone" / "core"
    (core.parent / "plugins" / "vlmhb-hf").mkdir(parents=True)
    core.mkdir()
    said = {"url": core.as_uri(), "dir_info": {}}
    monkeypatch.setattr(
        origin.metadata, "distribution", lambda name: SimpleNamespace(read_text=lambda _: json.dumps(said))
    )
    assert origin.origin() == (core, False)
    assert origin.pip_install("hf") == f"pip install '{core.parent / 'plugins' / 'vlmhb-hf'}'"
    said = {"url": "https://example.org/vlmhb.git", "vcs_info": {"vcs": "git"}}
    assert origin.pip_install("hf") == "pip install 'vlmhb[hf]'"
    monkeypatch.setattr(origin.metadata, "distribution", lambda name: SimpleNamespace(read_text=lambda _: None))
    assert "pip install 'vlmhb[vllm]' (here)" in origin.how_to_get("vllm")


def test_add_says_what_is_missing(tmp_path):
    with pytest.raises(ManagedEnvironmentError, match="is no environment"):
        manage.add(tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").write_text("#!/bin/sh\necho no module; exit 1\n")
    (tmp_path / "bin" / "python").chmod(0o755)
    with pytest.raises(ManagedEnvironmentError, match=r"(?s)does not hold a working vlmhb.*pip install.*no module"):
        manage.add(tmp_path)


def test_discard_leaves_nothing(home):
    path = places.environment_path("x-cpu")
    (path / "deep").mkdir(parents=True)
    places.discard(path)
    places.discard(path)
    assert not path.exists()
    assert list((home / "environments" / ".removed").iterdir()) == []


def test_plugin_folder_of_the_tests_is_a_plugin():
    assert Source.of(SCRIPTED).kind == "folder"
    assert msgspec.json.decode(msgspec.json.encode(Source.of(SCRIPTED)), type=Source) == Source.of(SCRIPTED)
