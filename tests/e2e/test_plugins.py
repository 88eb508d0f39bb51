"""Broken plugins, each a real distribution in a temporary environment, are reported and disable nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.envs import CORE, SCRIPTED, Env, make_env
from support.runs import write_csv

CASES = Path(__file__).parents[1] / "cases"
HEALTHY = """
import vlmhb
@vlmhb.hookimpl
def vlmhb_backend_info(backend):
    return vlmhb.BackendInfo(name=backend, engine="none", engine_version="1", devices=("cpu",))
@vlmhb.hookimpl
def vlmhb_load(backend, spec):
    raise NotImplementedError
"""
BROKEN_BACKENDS = {
    "signature": (
        "import vlmhb\n@vlmhb.hookimpl\ndef vlmhb_backend_info(backend): ...\n"
        "@vlmhb.hookimpl\ndef vlmhb_load(backend, path): ...\n",
        ["vlmhb_load", "path"],
    ),
    "unknownhook": (HEALTHY + "@vlmhb.hookimpl\ndef vlmhb_unload(model): ...\n", ["vlmhb_unload"]),
    "nohooks": ("", ["no vlmhb_backend_info", "no vlmhb_load"]),
    "otherversion": (f"vlmhb_contract = 99\n{HEALTHY}", ["version 99", "version 1"]),
    "raises": (
        HEALTHY.replace("return vlmhb.BackendInfo", "raise ValueError('no such device'); vlmhb.BackendInfo"),
        ["ValueError", "no such device"],
    ),
    "wrongtype": (HEALTHY.replace("return vlmhb.BackendInfo(", "return dict("), ["not a BackendInfo"]),
    "interrupts": ("raise BaseException('odd')", ["BaseException", "odd"]),
}
BROKEN_PLUGINS = {
    "plainbroken": ("import not_there_at_all", ["not_there_at_all"]),
    "metricraises": (
        "import vlmhb\n@vlmhb.hookimpl\ndef vlmhb_metrics(): raise KeyError('lexicon')\n",
        ["vlmhb_metrics", "lexicon"],
    ),
    "metrictaken": (
        "import vlmhb\nclass M(vlmhb.Metric):\n    name = title = 'cer'\n    def score(self, pairs): ...\n"
        "@vlmhb.hookimpl\ndef vlmhb_metrics(): return [M()]\n",
        ["'cer'", "taken"],
    ),
}


def write_package(folder: Path, name: str, code: str, group: str, entry: str | None = None) -> Path:
    """A minimal distribution ``acme-<name>`` with one entry point."""
    package = folder / f"acme-{name}"
    package.mkdir()
    (package / f"acme_{name}.py").write_text(code)
    (package / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        f'[project]\nname = "acme-{name}"\nversion = "2.5"\n'
        f'[project.entry-points."{group}"]\n{entry or name} = "acme_{name}"\n'
        f'[tool.setuptools]\npy-modules = ["acme_{name}"]\n'
    )
    return package


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Env:
    """The core, a healthy engine, and every broken plugin there is."""
    folder = tmp_path_factory.mktemp("packages")
    packages = [write_package(folder, name, code, "vlmhb.backends") for name, (code, _) in BROKEN_BACKENDS.items()]
    packages += [write_package(folder, name, code, "vlmhb.plugins") for name, (code, _) in BROKEN_PLUGINS.items()]
    packages += [write_package(folder, "thief", HEALTHY, "vlmhb.backends", entry="scripted")]
    packages += sorted(path for path in (CASES / "C24").glob("engine_*"))
    made = make_env(folder / "env", CORE, SCRIPTED, editable=True)
    made.install(*packages)
    return made


@pytest.fixture(scope="module")
def listed(env: Env) -> dict[str, Any]:
    """What ``vlmhb backends --json`` says."""
    return json.loads(env.vlmhb("backends", "--json").stdout)


@pytest.mark.parametrize("name", BROKEN_BACKENDS)
def test_a_broken_engine_is_listed_with_its_reason(name: str, listed: dict[str, Any]) -> None:
    (entry,) = [entry for entry in listed["backends"] if entry["name"] == name]
    assert (entry["status"], entry["distribution"], entry["version"]) == ("broken", f"acme-{name}", "2.5")
    for text in BROKEN_BACKENDS[name][1]:
        assert text in entry["problem"]


@pytest.mark.parametrize("name", BROKEN_PLUGINS)
def test_another_broken_plugin_is_listed_with_its_reason(name: str, listed: dict[str, Any]) -> None:
    (problem,) = [problem for problem in listed["left_out"] if problem["name"] == name]
    assert (problem["distribution"], problem["version"]) == (f"acme-{name}", "2.5")
    for text in BROKEN_PLUGINS[name][1]:
        assert text in problem["problem"]


def test_a_taken_name_stays_with_its_owner(listed: dict[str, Any]) -> None:
    (entry,) = [entry for entry in listed["backends"] if entry["name"] == "scripted"]
    assert (entry["status"], entry["distribution"]) == ("installed", "vlmhb-scripted")
    (problem,) = [problem for problem in listed["left_out"] if problem["distribution"] == "acme-thief"]
    assert "taken by vlmhb-scripted" in problem["problem"]
    assert problem["version"] == "2.5"


def test_c24_engines_that_cannot_be_imported(env: Env, listed: dict[str, Any]) -> None:
    expect = {"engine_missing": "a_package_that_is_not_installed", "engine_typo": "syntax", "engine_exit": "3"}
    found = {entry["name"]: entry for entry in listed["backends"]}
    for name, reason in expect.items():
        assert found[name]["status"] == "broken"
        assert found[name]["distribution"] in (name, name.replace("_", "-"))
        assert reason in found[name]["problem"]
    text = env.vlmhb("backends")
    assert all(reason in text.stdout for reason in expect.values())
    assert "Traceback" not in text.stdout + text.stderr
    done = env.vlmhb("run", str(CASES / "C24" / "user_config.csv"), check=False)
    assert done.returncode == 2
    assert "row 1" in done.stderr
    assert "column backend" in done.stderr
    assert "engine_missing" in done.stderr
    assert "Traceback" not in done.stderr


def test_one_module_may_stand_in_both_groups(tmp_path: Path) -> None:
    package = write_package(tmp_path, "both", HEALTHY, "vlmhb.backends")
    toml = (package / "pyproject.toml").read_text()
    (package / "pyproject.toml").write_text(toml + '[project.entry-points."vlmhb.plugins"]\nboth = "acme_both"\n')
    made = make_env(tmp_path / "env", CORE, editable=True)
    made.install(package)
    found = json.loads(made.vlmhb("backends", "--json").stdout)
    assert {entry["name"]: entry["status"] for entry in found["backends"]}["both"] == "installed"
    assert found["left_out"] == []


def test_everything_else_works_as_before(env: Env, tmp_path: Path) -> None:
    dataset = CASES / "C05" / "dataset"
    config = write_csv(
        tmp_path / "config.csv",
        [{"dataset": dataset, "backend": "scripted", "model_name": "tiny", "metrics": "CER,WER"}],
    )
    env.vlmhb("run", str(config), "--out", str(tmp_path / "out"))
    assert "run" in env.vlmhb("--help").stdout


def test_an_environment_without_any_engine_says_what_to_install(tmp_path: Path) -> None:
    bare = make_env(tmp_path / "bare", CORE)
    listed = json.loads(bare.vlmhb("backends", "--json").stdout)
    assert {entry["name"]: entry["status"] for entry in listed["backends"]} == dict.fromkeys(
        ("hf", "vllm", "sglang"), "not installed"
    )
    config = write_csv(tmp_path / "config.csv", [{"dataset": CASES / "C05" / "dataset", "model_name": "org/model"}])
    done = bare.vlmhb("run", str(config), check=False)
    assert done.returncode == 2
    assert f"pip install {CORE.parent / 'plugins' / 'vlmhb-hf'} (here)" in done.stderr
