"""``vlmhb demo`` on one engine and on several."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
import uv
from support.envs import CORE, DEMO, SCRIPTED, SCRIPTED_NAMES, Env, make_env, run
from support.scripts import ScriptFile


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Env:
    """The core, the demo's documents and model, and the scripted engine under the names of the real ones."""
    return make_env(tmp_path_factory.mktemp("envs") / "demo", CORE, DEMO, SCRIPTED, SCRIPTED_NAMES, editable=True)


def test_engines_stand_beside_each_other(env: Env, tmp_path: Path, script: ScriptFile):
    arguments = ("demo", "--backends", "hf, vllm,sglang", "--limit", "9", "--out", str(tmp_path / "run"))
    done = env.vlmhb(*arguments, check=False, VLMHB_SCRIPT=str(script.path))
    assert done.returncode == 0, done.stderr
    assert "Answered now: 27; reused from before: 0." in done.stdout
    lines = [[cell.strip() for cell in line.split("│")] for line in done.stdout.splitlines()]
    cells = {line[1]: line[2:5] for line in lines if len(line) == 6}
    assert cells["answers equal to those of hf"] == ["9 of 9"] * 3
    assert cells["exact_match: all"] == ["0.0000"] * 3
    assert all(float(speed) > 0 for speed in cells["answers a second"])


def test_one_engine_needs_no_columns(env: Env, tmp_path: Path, script: ScriptFile):
    done = env.vlmhb("demo", "-b", "vllm", "--limit", "3", "--out", str(tmp_path), VLMHB_SCRIPT=str(script.path))
    assert "beside each other" not in done.stdout
    assert (tmp_path / "report" / "index.html").is_file()


def test_an_engine_that_nobody_knows_is_refused_with_a_suggestion(env: Env, tmp_path: Path):
    done = env.vlmhb("demo", "--backends", "hf,vlmm", "--out", str(tmp_path), check=False)
    assert done.returncode == 2
    assert "vllm" in done.stderr
    assert "Traceback" not in done.stderr


def test_wheels_are_small_and_only_the_demo_brings_the_demo(tmp_path: Path):
    """The demo's wheel holds pages, model and fonts, but not the training; the core's holds nothing of it."""
    for project in (CORE, DEMO):
        run([uv.find_uv_bin(), "build", "--quiet", "--wheel", "--out-dir", str(tmp_path), str(project)])
    (core,), (demo,) = tmp_path.glob("vlmhb-0*.whl"), tmp_path.glob("vlmhb_demo-*.whl")
    names = zipfile.ZipFile(demo).namelist()
    assert demo.stat().st_size <= 15e6
    assert core.stat().st_size <= 1e6
    assert sum(name.endswith(".jpg") for name in names) == 98
    assert {"model.safetensors", "tokenizer.json", "MODEL_CARD.md"} <= {Path(name).name for name in names}
    assert not [name for name in names if "training" in name]
    assert not [name for name in zipfile.ZipFile(core).namelist() if name.endswith((".jpg", ".safetensors", ".ttf"))]
