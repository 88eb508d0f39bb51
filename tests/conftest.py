"""What tests of every folder may use."""

from __future__ import annotations

import pytest
from support.envs import CORE, SCRIPTED, Env, make_env


@pytest.fixture(scope="session")
def scripted_env(tmp_path_factory: pytest.TempPathFactory) -> Env:
    """An environment of its own that holds the core and the scripted engine."""
    return make_env(tmp_path_factory.mktemp("envs") / "scripted", CORE, SCRIPTED, editable=True)
