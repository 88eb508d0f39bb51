"""``vlmhb bench`` as a command, with the scripted engine under the names of the real ones."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from support.runs import read_csv
from support.scripts import ScriptFile

DRAWN = ("--pages", "2", "--size", "200x280", "--questions", "3", "-o", "delay=0.002")


def passes(script: ScriptFile, backend: str) -> list[str]:
    """The questions that a backend was asked, in order."""
    return [entry["id"] for entry in script.log() if "id" in entry and entry["backend"] == backend]


def test_two_engines_take_turns_on_the_same_work(cli, script, tmp_path):
    done = cli("bench", "m", "-b", "hf,vllm", *DRAWN, "--repeats", "2", "--out", tmp_path / "out")
    assert "6 questions about 2 drawn pages of 200 x 280 pixels" in done.stdout
    assert "took turns" in done.stdout
    bench = json.loads((tmp_path / "out" / "bench.json").read_text())
    assert bench["order"] == "alternating"
    for engine in bench["engines"]:
        assert [one["repeat"] for one in engine["passes"]] == [1, 2]
        assert engine["load_seconds"] > 0
        assert engine["memory"]["host"] > 1 << 20
        assert all(timing["time_to_first_token"] is None for one in engine["passes"] for timing in one["requests"])
    assert len(passes(script, "hf")) == 6 * 3, "a warm-up and two repeats"
    assert script.loads() == 2
    order = [entry["backend"] for entry in script.log() if "id" in entry]
    turns = [name for number, name in enumerate(order) if number == 0 or order[number - 1] != name]
    assert turns == ["hf", "vllm", "hf", "vllm", "hf"], "warm-ups, forward, and back"
    table = {line[: line.index("  ")]: line.split() for line in done.stdout.splitlines() if "  " in line}
    assert table["equal answers"][-3:] == ["12", "of", "12"]
    assert table["time to first token p50 / p90 / p99, s"][-2:] == ["-", "-"]
    assert (tmp_path / "out" / "bench.html").is_file()


@pytest.mark.slow
def test_other_answers_are_flagged(cli, script, tmp_path):
    script.rules({"backend": "vllm", "id": "1-2", "answer": "another"})
    done = cli("bench", "m", "-b", "hf,vllm", *DRAWN, "--repeats", "1", "--out", tmp_path / "out")
    assert "5 of 6 (!)" in done.stdout
    assert "vllm: 1 answers are not those of hf, to requests 1-2" in done.stdout


@pytest.mark.slow
def test_an_engine_that_refuses_does_not_stop_the_others(cli, script, tmp_path):
    script.rules({"on": "load", "backend": "vllm", "do": "refuse"}, {"id": "0-1", "do": "error"})
    done = cli("bench", "m", "-b", "vllm,hf", *DRAWN, "--repeats", "1", "--out", tmp_path / "out", "--json", code=1)
    printed = json.loads(done.stdout)
    problems = {engine["name"]: engine["problem"] for engine in printed["bench"]["engines"]}
    assert "the script refuses this model" in problems["vllm"]
    assert problems["hf"] is None
    (figures,) = printed["figures"]
    assert (figures["engine"], figures["answered"], figures["requests"]) == ("hf", 5, 6)
    assert figures["speedup"] is None
    assert printed["bench"]["engines"][1]["passes"] == []


@pytest.mark.slow
def test_a_sweep_never_has_more_in_flight_than_it_says(cli, script, tmp_path):
    done = cli(
        *("bench", "m", "-b", "hf", *DRAWN, "-o", "batch=4", "--repeats", "1", "--concurrency", "1,3"),
        *("--rate", "200", "--csv", tmp_path / "bench.csv", "--out", tmp_path / "out"),
    )
    rows = read_csv(tmp_path / "bench.csv")
    assert [row["arrivals"] for row in rows] == ["all at once", "concurrency 1", "concurrency 3", "rate 200"]
    assert {row["answered"] for row in rows} == {"6"}
    assert "concurrency 3" in done.stdout
    asked = [entry["batch"] for entry in script.log() if "id" in entry]
    _, _, alone, three, _ = (asked[start : start + 6] for start in range(0, 30, 6))
    assert Counter(alone) == {1: 6}
    assert max(three) <= 3
    assert 3 in three


@pytest.mark.slow
def test_against_an_earlier_result(cli, script, tmp_path):
    dataset = tmp_path / "data"
    dataset.mkdir()
    lines = [f"{n};;what is {n}?;{n}" for n in range(12)]
    (dataset / "annotation.csv").write_text("\n".join(["data_index;image_path;question;answer", *lines]) + "\n")
    asked = ("bench", "m", "-b", "hf", "-d", dataset, "--repeats", "3")
    cli(*asked, "-o", "delay=0.03", "--out", tmp_path / "slow")
    done = cli(*asked, "-o", "delay=0.01", "--out", tmp_path / "fast", "--against", tmp_path / "slow", "--json")
    printed = json.loads(done.stdout)
    rate = next(change for change in printed["changes"] if change["figure"] == "requests/s")
    value, low, high = rate["ratio"]
    assert 1.5 < low < value < high
    assert value < 3.3
    assert printed["differences"] == ["options delay=0.01, before delay=0.03"]
    refused = cli(*asked, "--max-tokens", "3", "--out", tmp_path / "x", "--against", tmp_path / "slow", code=2)
    assert "speeds of different work cannot be compared" in refused.stderr


@pytest.mark.slow
def test_one_after_another(cli, script, tmp_path):
    done = cli("bench", "m", "-b", "hf,vllm", *DRAWN, "--repeats", "2", "--in-turn", "--out", tmp_path / "out")
    order = [entry["backend"] for entry in script.log() if "id" in entry]
    assert order == ["hf"] * 18 + ["vllm"] * 18
    assert "one engine after another: asked for by --in-turn" in done.stdout


@pytest.mark.slow
def test_what_cannot_be_measured_is_refused(cli, tmp_path):
    out = ("--out", tmp_path / "out")
    for arguments, message in (
        (("-b", "hf,hf"), "each only once"),
        (("-b", "hf", "--size", "10x10"), "at least 112 pixels"),
        (("-b", "hf", "--limit", "3"), "--limit goes with --dataset"),
        (("-b", "hf", "-d", "x", "--pages", "3"), "--pages is for drawn pages"),
        (("-b", "hf", "--concurrency", "1,x"), "whole numbers above 0"),
        (("-b", "hf", "--rate", "0"), "numbers above 0"),
        (("-b", "hf", "--against", str(tmp_path / "none.json")), "cannot be read"),
        (
            (
                "-b",
                "hff",
            ),
            "hff",
        ),
        (("-b", "hf", "-d", str(tmp_path / "nothing")), "nothing"),
    ):
        done = cli("bench", "m", *arguments, *out, code=2)
        assert message in done.stderr, arguments


def test_progress_is_plain_lines(cli, tmp_path: Path):
    done = cli("bench", "m", "-b", "hf", *DRAWN, "--repeats", "1", "--out", tmp_path / "out")
    assert "hf: all at once, repeat 1" in done.stderr
    assert "6/6 answered" in done.stderr
