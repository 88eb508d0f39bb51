"""A run from the command line: what the dataset says about its answers reaches the engine."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

SCHEMA = {
    "type": "object",
    "properties": {"kind": {"enum": ["card", "bill"]}, "pages": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["kind", "pages"],
    "additionalProperties": False,
}


def test_answers_of_a_run_follow_their_rows_schemas(tiny: Path, tmp_path: Path) -> None:
    rows = [
        {"question": "What kind?", "answer": {"kind": "card", "pages": 1}, "json_schema": SCHEMA},
        {"question": "What kind?", "answer": "card"},
        {"question": "How many?", "answer": 7, "json_schema": {"type": "integer", "multipleOf": 7}},
    ]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = tmp_path / "config.csv"
    config.write_text(f"dataset;backend;model_name;model_options;max_tokens\nd.jsonl;vllm;{tiny};kv_cache_gib=0.5;64\n")
    command = [str(Path(sys.executable).with_name("vlmhb")), "run", str(config), "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1, done.stderr
    with (tmp_path / "out" / "answers.csv").open(encoding="utf-8-sig", newline="") as file:
        held, free, refused = csv.DictReader(file, delimiter=";")
    value = json.loads(held["answer"])
    assert value["kind"] in ("card", "bill")
    assert 0 <= value["pages"] <= 99
    assert (held["finish_reason"], held["notes"]) == ("stop", "")
    assert free["status"] == "ok"
    assert not free["answer"].startswith("{")
    assert refused["status"] == "error"
    assert "not supported" in refused["error"]
