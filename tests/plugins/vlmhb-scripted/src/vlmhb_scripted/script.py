"""The script: a JSON file that says what the engine answers and how it misbehaves.

::

    {"log": "/tmp/asked.jsonl",
     "rules": [
        {"question": "What is the total?", "answer": "12,50"},
        {"model": "small", "image": "page_3.png", "answer": "?"},
        {"id": "17", "do": "segfault", "times": 1},
        {"on": "load", "do": "refuse"}]}

A rule fits when each of ``model`` (path or its last part), ``question`` (all text of the last message), ``image``
(label of any image), ``id`` and ``backend`` that it names is equal; the first rule that fits wins. Without one the
answer repeats the question. ``times`` limits how often a rule acts, over all processes of the run; a rule used up no
longer fits; ``skip`` is how often it first lets pass what it fits. ``on: load`` rules act at loading, ``on: prepare``
ones at the imports before it; a batch with a request that an ``on: batch`` rule fits is out of memory. What each ``do``
means is in :mod:`vlmhb_scripted.actions`.

Every request is appended to ``log`` before it is worked on, as one JSON line: backend, model, id, question, images,
max_tokens, json_schema, pid; loading and closing are logged with ``event``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path


class Script:
    """A loaded script; the empty path is an empty script."""

    def __init__(self, path: str, backend: str, model: str) -> None:
        self.path = path
        content = json.loads(Path(path).read_text()) if path else {}
        self._log = content.get("log")
        self._rules = content.get("rules", [])
        self._fixed = {"backend": backend, "model": model}

    def log(self, **fields: object) -> None:
        """Append a line to the log."""
        if self._log:
            line = json.dumps({**self._fixed, "pid": os.getpid(), **fields}, ensure_ascii=False) + "\n"
            with Path(self._log).open("a", encoding="utf-8") as file:
                file.write(line)

    def rule(self, on: str = "ask", **facts: object) -> dict:
        """The first rule that fits, or an empty one; a limited rule is used up by one."""
        for number, rule in enumerate(self._rules):
            if rule.get("on", "ask") == on and self._fits(rule, facts) and self._use(number, rule):
                return rule
        return {}

    def _fits(self, rule: dict, facts: dict) -> bool:
        model = self._fixed["model"]
        return (
            rule.get("model", model) in (model, Path(model).name)
            and rule.get("backend", self._fixed["backend"]) == self._fixed["backend"]
            and all(rule[name] == facts.get(name) for name in ("question", "id") if name in rule)
            and ("image" not in rule or rule["image"] in facts.get("images", ()))
        )

    def _use(self, number: int, rule: dict) -> bool:
        if "times" not in rule and "skip" not in rule:
            return True
        counter = Path(f"{self.path}.used-{number}")
        used = int(counter.read_text()) if counter.exists() else 0
        counter.write_text(str(used + 1))
        skip = rule.get("skip", 0)
        return skip <= used < skip + rule.get("times", 10**9)
