"""JSON files as they stand in a model's folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write(path: Path, content: Any) -> None:
    """Write UTF-8 with LF line ends on every system, so that the bytes are the same everywhere."""
    path.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8", newline="\n")
