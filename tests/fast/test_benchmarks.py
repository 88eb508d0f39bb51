"""How benchmarks are run and what they found gets into the documentation."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.envs import ROOT

BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """``benchmarks/__main__.py`` as a module."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return SimpleNamespace(**runpy.run_path(str(BENCHMARKS / "__main__.py")))


def entry(*results: dict[str, Any], code: int = 0, machine: str = "M") -> dict[str, Any]:
    return {"code": code, "results": list(results), "date": "2026-01-02", "machine": machine}


def record(folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: Any, **options: Any) -> dict[str, Any]:
    module = runpy.run_path(str(BENCHMARKS / "_results.py"))
    monkeypatch.setenv(module["FILE"], str(folder / "found.jsonl"))
    kept = module["record"](*arguments, **options)
    line: dict[str, Any] = json.loads((folder / "found.jsonl").read_text().splitlines()[-1])
    assert line["kept"] == kept
    return line


def test_a_limit_is_the_most_or_the_least(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert record(tmp_path, monkeypatch, "a", 1.5, 1.5)["kept"]
    assert not record(tmp_path, monkeypatch, "a", 1.6, 1.5)["kept"]
    assert record(tmp_path, monkeypatch, "a", 1.6, 1.5, at_least=True)["kept"]
    assert not record(tmp_path, monkeypatch, "a", 1.4, 1.5, at_least=True)["kept"]
    assert record(tmp_path, monkeypatch, "a", 1.4, unit="s")["kept"]


def test_the_table_says_what_was_found_and_where(
    runner: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = record(tmp_path, monkeypatch, "one with other", 1.234567, 2.0)
    bad = record(tmp_path, monkeypatch, "rate", 0.5, 0.95, at_least=True)
    stored = {"b": entry(good, bad), "a": entry(code=1, machine="N"), "c": entry(machine="N")}
    lines = runner.table(stored).splitlines()
    assert lines[2] == "| `a.py` | all of it | | | **no** (exit code 1) | (1) | 2026-01-02 |"
    assert lines[3] == "| `b.py` | one with other | 1.23 times | at most 2 | yes | (2) | 2026-01-02 |"
    assert lines[4] == "| `b.py` | rate | 0.5 times | at least 0.95 | **no** | (2) | 2026-01-02 |"
    assert lines[5] == "| `c.py` | all of it | | | yes | (1) | 2026-01-02 |"
    assert lines[7:] == ["(1) N\\", "(2) M"]


def test_the_page_holds_what_is_stored(runner: SimpleNamespace) -> None:
    stored = json.loads(runner.STORED.read_text(encoding="utf-8"))
    page = runner.PAGE.read_text(encoding="utf-8")
    assert f"{runner.BEGIN}\n{runner.table(stored)}\n{runner.END}" in page
    assert set(stored) <= set(runner.names())
    assert set(runner.ENGINES) <= set(runner.names())


def test_an_engine_without_an_environment_is_left_out(
    runner: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VLMHB_HOME", str(tmp_path))
    assert runner.run("vllm_overhead") is None
    assert "vlmhb env create vllm" in capsys.readouterr().out


def test_an_unknown_name_is_refused() -> None:
    done = subprocess.run([sys.executable, str(BENCHMARKS), "nothing"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "there is no benchmark nothing" in done.stderr


def test_a_plan_of_3000_rows_is_measured(runner: SimpleNamespace, tmp_path: Path) -> None:
    planning = str(BENCHMARKS / "planning.py")
    runpy.run_path(planning)["write_dataset"](tmp_path, 3000)
    command = [sys.executable, planning, "--step", "plan", "--folder", str(tmp_path)]
    said = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert said["left"] == 3000
    assert 0 < said["cpu"] < 60
