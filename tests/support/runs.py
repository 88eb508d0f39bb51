"""Reading what a run wrote, the way a user's script would."""

from __future__ import annotations

import csv
import json
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from support.envs import Env
from support.scripts import ScriptFile


def read_csv(path: Path) -> list[dict[str, str]]:
    """The records of an exported table."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file, delimiter=";"))


def write_csv(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    """A table as the older project writes it."""
    rows = list(rows)
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(rows)
    return path


class RunResults:
    """The exports of one run folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.answers = read_csv(folder / "answers.csv")

    def table(self, aggregator: str) -> list[dict[str, str]]:
        """A metrics table."""
        return read_csv(self.folder / "metrics" / f"{aggregator}.csv")

    @property
    def general(self) -> dict[str, str]:
        """The only line of the general table."""
        (line,) = self.table("general")
        return line

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest; fails on what is no standard JSON (NaN, Infinity)."""

        def refuse(name: str) -> None:
            raise AssertionError(f"{name} is no JSON")

        return json.loads((self.folder / "manifest.json").read_text(encoding="utf-8"), parse_constant=refuse)


def kill_when_stored(count: int, env: Env, script: ScriptFile, *arguments: str | Path) -> None:
    """Start ``vlmhb``, and SIGKILL it as soon as its database holds so many answers; ``--out`` is the last argument."""
    database = Path(arguments[-1]) / "run.sqlite"
    command = [str(env.path / "bin" / "vlmhb"), *map(str, arguments)]
    process = subprocess.Popen(command, env={**os.environ, "VLMHB_SCRIPT": str(script.path)}, stderr=subprocess.DEVNULL)
    while stored_answers(database) < count:
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.002)
    process.kill()
    assert process.wait() == -signal.SIGKILL


def stored_answers(database: Path) -> int:
    """How many answers a run's database holds; 0 as long as there is none."""
    try:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
            count: int = db.execute("SELECT count(*) FROM answers WHERE ok").fetchone()[0]
            return count
    except sqlite3.OperationalError:
        return 0
