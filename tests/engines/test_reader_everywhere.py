"""The embedded reader on every engine: beside each other by one command, and the same tokens for every question."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.envs import CORE, DEMO, Env, make_env
from support.runs import read_csv

ENGINES = ("hf", "vllm", "sglang")
QUESTIONS = 728
pytestmark = [pytest.mark.vllm, pytest.mark.sglang, pytest.mark.slow]


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Env:
    """The core and the demo, without any engine; the engines come from managed environments."""
    return make_env(tmp_path_factory.mktemp("reader") / "env", CORE, DEMO)


def test_the_demo_ends_with_three_equal_columns(env: Env, tmp_path: Path):
    done = env.vlmhb("demo", "--backends", ",".join(ENGINES), "--out", str(tmp_path))
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in done.stdout.splitlines()]
    cells = {line[0]: line[1:] for line in lines if len(line) == 1 + len(ENGINES)}
    assert cells["answers equal to those of hf"] == [f"{QUESTIONS} of {QUESTIONS}"] * len(ENGINES)
    assert len(set(cells["exact_match: all"])) == 1
    assert float(cells["exact_match: all"][0]) > 0.8
    assert all(float(speed) > 0 for speed in cells["answers a second"])


def test_every_token_of_every_answer_is_the_same(env: Env, tmp_path: Path):
    names = ("hf", "vllm", "vllm:transformers", "sglang")
    options = ("-b", ",".join(names), "-d", "demo-documents", "--max-tokens", "256", "--out", str(tmp_path), "--json")
    done = env.vlmhb("compare", "vlmhb-reader", *options, check=False)
    found = json.loads(done.stdout)
    assert [engine["name"] for engine in found] == list(names[1:])
    others = [(engine["name"], c) for engine in found for c in engine["comparisons"] if (c["verdict"] != "same")]
    assert others == []
    assert all(len(engine["comparisons"]) == QUESTIONS for engine in found)
    assert len(read_csv(tmp_path / "compare.csv")) == QUESTIONS * 3
    assert done.returncode == 0, done.stderr
