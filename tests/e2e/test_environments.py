"""Managed environments, made for real with uv from an environment that holds nothing but the core."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from support.envs import CORE, SCRIPTED, Env, make_env
from support.runs import RunResults
from vlmhb.environments import manage, places, record
from vlmhb.environments.create import create
from vlmhb.errors import ManagedEnvironmentError
from vlmhb.worker.model import WorkerModel

from .test_run import make_config, make_dataset

NAME = "scripted-cpu"


@pytest.fixture(scope="module")
def core_env(tmp_path_factory: pytest.TempPathFactory) -> Env:
    """An environment that holds the core alone."""
    return make_env(tmp_path_factory.mktemp("plain") / "env", CORE, editable=True)


@pytest.fixture(scope="module")
def made_home(core_env: Env, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the scripted engine's environment in it, made by the command line."""
    home = tmp_path_factory.mktemp("home")
    done = core_env.vlmhb("env", "create", "scripted", "--plugin", str(SCRIPTED), VLMHB_HOME=str(home))
    assert done.stdout.strip() == str(home / "environments" / NAME)
    assert "of disk (" in done.stderr
    assert "free" in done.stderr
    return home


@pytest.fixture
def home(made_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VLMHB_HOME", str(made_home))
    return made_home


@pytest.fixture
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VLMHB_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def left_over(home: Path) -> list[str]:
    """Everything under the home's environments but locks."""
    folder = home / "environments"
    found = [p for p in folder.rglob("*") if ".locks" not in p.parts] if folder.exists() else []
    return [str(p.relative_to(folder)) for p in found if p.name not in (".building", ".removed")]


# --- the good case


def test_environment_answers(home):
    launch = manage.find_environment("scripted")
    assert any(line.startswith("msgspec==") for line in launch.freeze)
    with WorkerModel("scripted", launch) as model:
        model.load("small")
        assert model.generate("from another environment") == ["from another environment"]
        assert NAME in model.facts()["environment"]


def test_list_and_doctor_as_json(home, core_env):
    for command in ("list", "doctor"):
        done = core_env.vlmhb("env", command, "--json", VLMHB_HOME=str(home))
        (found,) = json.loads(done.stdout)["environments"]
        assert (found["name"], found["problem"], found["backends"]) == (NAME, None, ["scripted"])
        assert found["engines"] == {"vlmhb-scripted": "0.1.0"}


def test_creating_again_does_nothing(home, core_env):
    started = time.monotonic()
    done = core_env.vlmhb("env", "create", "scripted", "--plugin", str(SCRIPTED), VLMHB_HOME=str(home))
    assert "there already and in order" in done.stderr
    assert "installing" not in done.stderr
    assert time.monotonic() - started < 10


def test_scripts_of_the_renamed_environment_run(home):
    script = home / "environments" / NAME / "bin" / "vlmhb"
    done = subprocess.run([str(script), "--version"], capture_output=True, text=True, check=True)
    assert "0.1.0" in done.stdout


def test_recorded_versions_are_those_installed(home):
    path = home / "environments" / NAME
    found = record.read(path)
    installed = Env(path).run("-c", "from importlib.metadata import version; print(version('msgspec'))").stdout.strip()
    assert f"msgspec=={installed}" in found.freeze
    assert found.recipe.env == {"VLMHB_SCRIPTED_DEVICE": "cpu"}
    assert found.asked_plugin == str(SCRIPTED)


# --- what is broken is noticed and made again


def copy_of(made_home: Path, target: Path) -> Path:
    """A home of one's own with a copy of the environment, to be damaged."""
    shutil.copytree(made_home / "environments" / NAME, target / "environments" / NAME, symlinks=True)
    return target / "environments" / NAME


@pytest.mark.slow
def test_a_missing_package_is_noticed_and_mended(made_home, empty_home):
    path = copy_of(made_home, empty_home)
    shutil.rmtree(next(path.glob("lib/*/site-packages/click-*.dist-info")))
    shutil.rmtree(next(path.glob("lib/*/site-packages/click")))
    (found,) = manage.list_environments()
    assert "click" in found.problem
    with pytest.raises(ManagedEnvironmentError, match="vlmhb env create scripted --device cpu"):
        manage.find_environment("scripted")
    said: list[str] = []
    launch = manage.find_environment("scripted", rebuild=said.append)
    assert any("is made again: packages were" in line for line in said)
    with WorkerModel("scripted", launch) as model:
        assert model.load("small").generate("mended") == ["mended"]


@pytest.mark.slow
def test_a_run_makes_an_outdated_environment_again(made_home, empty_home, core_env, tmp_path):
    path = copy_of(made_home, empty_home)
    shutil.rmtree(next(path.glob("lib/*/site-packages/click-*.dist-info")))
    make_dataset(tmp_path / "dataset", 2)
    done = core_env.vlmhb("run", str(make_config(tmp_path, {})), "--out", str(tmp_path / "out"))
    assert "is made again: packages were" in done.stderr
    assert {line["status"] for line in RunResults(tmp_path / "out").answers} == {"ok"}


def test_a_backend_here_and_elsewhere_is_used_here_as_long_as_it_works(made_home, scripted_env):
    def state(**env):
        done = scripted_env.vlmhb("backends", "--json", VLMHB_HOME=str(made_home), **env)
        (entry,) = (found for found in json.loads(done.stdout)["backends"] if found["name"] == "scripted")
        return entry["status"], entry["problem"]

    assert state() == ("installed", None)
    assert state(VLMHB_SCRIPTED_PROBLEM="its engine is broken") == ("own environment", None)


def test_damage_that_no_file_shows_is_found_by_doctor(made_home, empty_home, core_env):
    path = copy_of(made_home, empty_home)
    next(path.glob("lib/*/site-packages/vlmhb_scripted/engine.py")).write_text("import nonesuch\n")
    assert manage.list_environments()[0].problem is None
    done = core_env.vlmhb("env", "doctor", check=False, VLMHB_HOME=str(empty_home))
    assert done.returncode == 1
    assert "No module named 'nonesuch'" in done.stdout


# --- what goes wrong while one is made


@pytest.mark.slow
def test_engine_that_cannot_be_imported(empty_home, monkeypatch):
    monkeypatch.setenv("VLMHB_SCRIPTED_RECIPE", '{"verify": "import no_such_engine"}')
    with pytest.raises(ManagedEnvironmentError, match=r"(?s)does not work.*No module named 'no_such_engine'"):
        create("scripted", plugin=str(SCRIPTED))
    assert left_over(empty_home) == []


@pytest.mark.slow
def test_failed_remake_leaves_the_old_one(made_home, empty_home, monkeypatch):
    path = copy_of(made_home, empty_home)
    monkeypatch.setenv("VLMHB_SCRIPTED_RECIPE", '{"requirements": ["msgspec==0.0.1"]}')
    with pytest.raises(ManagedEnvironmentError, match=r"(?s)installing the engine of scripted failed.*msgspec"):
        create("scripted", plugin=str(SCRIPTED), fresh=True)
    assert record.problem(path, record.read(path)) is None


def test_too_little_disk_is_said_beforehand(empty_home, monkeypatch):
    monkeypatch.setenv("VLMHB_SCRIPTED_RECIPE", json.dumps({"disk_bytes": 10**16}))
    said: list[str] = []
    with pytest.raises(ManagedEnvironmentError, match=r"takes about 10000000\.0 GB.*VLMHB_HOME"):
        create("scripted", plugin=str(SCRIPTED), progress=said.append)
    assert left_over(empty_home) == []
    assert not any("engine" in line for line in said)


@pytest.mark.slow
def test_disk_full_while_the_record_is_written(empty_home, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "record")

    monkeypatch.setattr(record, "write", full)
    with pytest.raises(ManagedEnvironmentError, match="the disk is full"):
        create("scripted", plugin=str(SCRIPTED))
    assert left_over(empty_home) == []


@pytest.fixture
def small_disk(tmp_path: Path):
    """A filesystem of 20 MB; needs the right to mount."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a small filesystem")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_disk_full_while_packages_are_installed(small_disk, monkeypatch):
    monkeypatch.setenv("VLMHB_HOME", str(small_disk))
    with pytest.raises(ManagedEnvironmentError, match="the disk is full"):
        create("scripted", plugin=str(SCRIPTED))
    assert left_over(small_disk) == []


@pytest.mark.slow
def test_plugin_without_a_recipe_needs_none(empty_home, tmp_path):
    plugin = tmp_path / "plain"
    shutil.copytree(SCRIPTED, plugin)
    main = plugin / "src" / "vlmhb_scripted" / "__init__.py"
    main.write_text(
        main.read_text()
        .replace("def vlmhb_environment(", "def unused(")
        .replace("@vlmhb.hookimpl\ndef unused", "def unused")
    )
    path = create("scripted", plugin=str(plugin))
    assert record.read(path).recipe.requirements == ()
    with WorkerModel("scripted", manage.find_environment("scripted")) as model:
        assert model.load("small").generate("plain") == ["plain"]


def test_a_plugin_that_no_index_has(core_env, empty_home):
    command = ("env", "create", "mine", "--plugin", "vlmhb-nonesuch-engine")
    done = core_env.vlmhb(*command, check=False, VLMHB_HOME=str(empty_home))
    assert done.returncode == 2
    assert "vlmhb-nonesuch-engine was not found" in done.stderr
    assert "Traceback" not in done.stderr
    assert left_over(empty_home) == []


# --- several processes


def start_create(env: Env, home: Path, **variables: str) -> subprocess.Popen[str]:
    command = [str(env.path / "bin" / "vlmhb"), "env", "create", "scripted", "--plugin", str(SCRIPTED)]
    kept = {name: value for name, value in os.environ.items() if name != "VLMHB_SCRIPTED_RECIPE"}
    return subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**kept, "VLMHB_HOME": str(home), **variables},
    )


def read_until(process: subprocess.Popen[str], words: str) -> None:
    for line in process.stderr:
        if words in line:
            return
    raise AssertionError(f"{words!r} was never said")


@pytest.mark.slow
def test_killed_creation_leaves_nothing_that_counts_and_can_be_repeated(core_env, empty_home):
    slow = '{"verify": "import time; time.sleep(30)"}'
    with start_create(core_env, empty_home, VLMHB_SCRIPTED_RECIPE=slow) as process:
        read_until(process, "checking that the engine")
        process.send_signal(signal.SIGKILL)
    assert manage.list_environments() == []
    assert manage.find_environment("scripted") is None
    assert places.building_path(NAME).exists()
    create("scripted", plugin=str(SCRIPTED))
    assert not places.building_path(NAME).exists()
    assert manage.doctor()[0].problem is None


@pytest.mark.slow
def test_interrupted_creation_cleans_up(core_env, empty_home):
    slow = '{"verify": "import time; time.sleep(30)"}'
    with start_create(core_env, empty_home, VLMHB_SCRIPTED_RECIPE=slow) as process:
        read_until(process, "checking that the engine")
        process.send_signal(signal.SIGINT)
        process.wait(15)
    assert left_over(empty_home) == []


@pytest.mark.slow
def test_two_processes_make_one_environment(core_env, empty_home):
    slow = '{"verify": "import time; time.sleep(2)"}'
    with start_create(core_env, empty_home, VLMHB_SCRIPTED_RECIPE=slow) as first:
        read_until(first, "making scripted-cpu")
        with start_create(core_env, empty_home) as second:
            output = second.communicate(timeout=120)[1]
        assert first.wait(60) == 0
    assert f"another process (process {first.pid}) works on {NAME}; waiting for it" in output
    assert "there already and in order" in output
    assert second.returncode == 0
    assert manage.doctor()[0].problem is None


# --- environments made by hand


def test_registered_environment(empty_home, scripted_env, core_env):
    done = core_env.vlmhb("env", "add", str(scripted_env.path), "--json", VLMHB_HOME=str(empty_home))
    assert json.loads(done.stdout)["environments"][0]["backends"] == ["scripted"]
    launch = manage.find_environment("scripted")
    assert launch.python == str(scripted_env.python)
    with WorkerModel("scripted", launch) as model:
        assert model.load("small").generate("by hand") == ["by hand"]
    assert manage.doctor()[0].problem is None
    core_env.vlmhb("env", "remove", str(scripted_env.path), VLMHB_HOME=str(empty_home))
    assert manage.find_environment("scripted") is None
    assert scripted_env.python.exists()


def test_environment_without_a_plugin_is_not_registered(empty_home, core_env):
    with pytest.raises(ManagedEnvironmentError, match="holds no plugin"):
        manage.add(core_env.path)
