"""Writing scripts for the scripted engine and reading what it was asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class ScriptFile:
    """A script in a temporary folder, with its log beside it."""

    def __init__(self, folder: Path, *rules: dict[str, Any]) -> None:
        self.path = folder / "script.json"
        self.log_path = folder / "asked.jsonl"
        self.rules(*rules)

    def rules(self, *rules: dict[str, Any]) -> None:
        """Replace the rules."""
        self.path.write_text(json.dumps({"log": str(self.log_path), "rules": list(rules)}))

    def log(self) -> list[dict[str, Any]]:
        """All that the engine logged."""
        if not self.log_path.exists():
            return []
        return [json.loads(line) for line in self.log_path.read_text(encoding="utf-8").splitlines()]

    def asked(self) -> list[str]:
        """The ids of the requests that the engine worked on, in that order, repetitions included."""
        return [entry["id"] for entry in self.log() if "id" in entry]

    def loads(self) -> int:
        """How often a model was loaded."""
        return sum(entry.get("event") == "load" for entry in self.log())
