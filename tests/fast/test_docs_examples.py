"""The examples of the documentation, run: what a page says that a command prints is what it prints.

The environment holds the core, the example engine and the demo package. The tutorials need a real engine and are run
in ``tests/engines/hf``.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.docs import blocks, pages
from support.envs import CORE, ROOT, Env, make_env
from support.examples import run_examples

TESTED = [page for page in pages() if any(block.marker == "tested" for block in blocks(page))]
PAGES = [page for page in TESTED if not page.name.startswith("tutorial")]


@pytest.fixture(scope="module")
def docs_env(tmp_path_factory: pytest.TempPathFactory) -> Env:
    """What the pages' examples run in."""
    example, demo = ROOT / "examples" / "vlmhb-baseline", ROOT / "plugins" / "vlmhb-demo"
    return make_env(tmp_path_factory.mktemp("docs") / "env", CORE, example, demo, editable=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples(page: Path, docs_env: Env, tmp_path: Path) -> None:
    run_examples(page, docs_env, tmp_path)


def test_every_page_with_commands_has_a_tested_one() -> None:
    names = {page.stem for page in TESTED}
    assert names >= {"cli", "config", "datasets", "metrics", "plugins", "python-api", "runs", "tutorial", "tutorial.ru"}
