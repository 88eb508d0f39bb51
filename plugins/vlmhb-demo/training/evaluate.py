"""The final evaluation: the exported folder through the ordinary ``vlmhb run``, clean and worn pages apart."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from pathlib import Path

SPLITS = ("test_clean", "test_worn")
_CONFIG = "dataset;task;backend;model_name;metrics;max_tokens;dtype;batch_size\n"
_ROW = "{split};VQA;hf;reader;['CER', 'exact_match'];256;float32;16\n"


def evaluate(folder: Path, out: Path) -> None:
    """Run the shipped pages and print the tables; needs ``vlmhb`` with the hf and demo plugins.

    Raises:
        subprocess.CalledProcessError: the run failed; it has said why.
    """
    from vlmhb_demo import DATASET

    for split in SPLITS:
        _take(DATASET, split, out / split)
    (out / "vlm_base.csv").write_text(f"model_name;model_path\nreader;{folder.resolve()}\n", encoding="utf-8")
    config = out / "user_config.csv"
    config.write_text(_CONFIG + "".join(_ROW.format(split=split) for split in SPLITS), encoding="utf-8")
    program = Path(sys.executable).with_name("vlmhb")
    subprocess.run([str(program), "run", str(config), "--out", str(out / "run")], check=True)


def _take(dataset: Path, split: str, target: Path) -> None:
    """Copy the rows and images of a split into a dataset of their own."""
    shutil.copytree(dataset / "images", target / "images", dirs_exist_ok=True)
    with (dataset / "annotation.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    with (target / "annotation.csv").open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=";", lineterminator="\n")
        writer.writeheader()
        writer.writerows(row for row in rows if row["split"] == split)
