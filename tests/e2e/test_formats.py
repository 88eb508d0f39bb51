"""Datasets that are no VLMHyperBench folder, from the config through a worker to the report."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import polars as pl
from support.envs import Env
from support.pages import png
from support.runs import read_csv, write_csv
from support.scripts import ScriptFile


def test_images_in_tables_reach_the_worker_and_the_report(tmp_path: Path, named_env: Env, script: ScriptFile) -> None:
    red, blue = png((255, 0, 0), (60, 40)), png((0, 0, 255), (60, 40))
    address = f"data:image/png;base64,{base64.b64encode(red).decode()}"
    lines = [
        {"id": "1", "image": address, "question": "12,50", "answers": ["12.50", "12,50"]},
        {"id": "2", "images": [address, address], "question": "Q", "answer": "another"},
        {"id": "3", "image": "data:image/png;base64,AAAA", "question": "Q", "answer": "Q"},
        {"id": "4", "image": "none.png", "question": "Q", "answer": "Q"},
    ]
    (tmp_path / "lines.jsonl").write_text("\n".join(map(json.dumps, lines)))
    frame = pl.DataFrame({"image": [{"bytes": blue, "path": None}], "query": ["B"], "label": ["B"]})
    frame.write_parquet(tmp_path / "table.parquet")
    scans = tmp_path / "scans/receipts"
    scans.mkdir(parents=True)
    (scans / "a.png").write_bytes(blue)
    (scans / "a.txt").write_text("Read it.")
    datasets = ["lines.jsonl", "table.parquet?question=query&answer=label", "scans?question=Read it."]
    config = write_csv(
        tmp_path / "user_config.csv",
        [
            {"dataset": name, "backend": "scripted", "model_name": "tiny", "metrics": "em,truncation,multiple_choice"}
            for name in datasets
        ],
    )
    out = tmp_path / "out"
    environ = {"VLMHB_SCRIPT": str(script.path), "VLMHB_HOME": str(tmp_path / "home")}
    done = named_env.vlmhb("run", str(config), "--out", str(out), check=False, **environ)
    assert done.returncode == 1, done.stderr
    rows = read_csv(out / "answers.csv")
    assert [(row["config_row"], row["status"], row["exact_match"]) for row in rows] == [
        ("1", "ok", "1"),
        ("1", "ok", "0"),
        ("1", "error", ""),
        ("1", "error", ""),
        ("2", "ok", "1"),
        ("3", "ok", "1"),
    ]
    assert "none.png" in rows[3]["error"]
    assert rows[0]["image_path"].startswith("embedded:")
    assert rows[5]["doc_class"] == "receipts"
    assert sorted(len(entry["images"]) for entry in script.log() if "images" in entry)[-1] == 2
    pages = [path for path in (out / "report").rglob("*.jpg") if not path.name.endswith(".t.jpg")]
    assert len(pages) == 2  # red and blue, each once
    again = named_env.vlmhb("run", str(config), "--out", str(out), check=False, **environ)
    assert "reused from before: 4" in again.stdout
