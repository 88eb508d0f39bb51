"""The tutorials, run as a reader would type them, on the real engine and the embedded model."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.docs import DOCS
from support.envs import Env
from support.examples import run_examples

pytestmark = [pytest.mark.hf, pytest.mark.slow]


@pytest.mark.parametrize("name", ["tutorial.md", "tutorial.ru.md"])
def test_every_command_does_what_the_tutorial_says(name: str, tmp_path: Path) -> None:
    run_examples(DOCS / name, Env(Path(sys.prefix)), tmp_path)
