"""The final evaluation: the exported folder through the ordinary ``vlmhb run``, on all shipped pages."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

CONFIG = (
    "dataset;task;backend;model_name;metrics;max_tokens;dtype\n"
    "demo-documents;VQA;hf;reader;['CER', 'exact_match'];256;float32\n"
)


def evaluate(folder: Path, out: Path) -> Path:
    """Run the shipped pages and print the table; needs ``vlmhb`` with the hf and demo plugins.

    Returns:
        The file of the answers.

    Raises:
        subprocess.CalledProcessError: the run failed; it has said why.
    """
    out.mkdir(parents=True, exist_ok=True)
    with (out / "vlm_base.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=";").writerows([("model_name", "model_path"), ("reader", folder.resolve())])
    config = out / "user_config.csv"
    config.write_text(CONFIG, encoding="utf-8")
    program = Path(sys.executable).with_name("vlmhb")
    subprocess.run([str(program), "run", str(config), "--out", str(out / "run"), "--fresh"], check=True)
    return out / "run" / "answers.csv"
