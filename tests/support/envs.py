"""Real environments for tests: made with uv, in a second once the packages are in its cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import uv

ROOT = Path(__file__).parents[2]
CORE = ROOT / "core"
DEMO = ROOT / "plugins" / "vlmhb-demo"
SCRIPTED = ROOT / "tests" / "plugins" / "vlmhb-scripted"
SCRIPTED_NAMES = ROOT / "tests" / "plugins" / "vlmhb-scripted-names"


class Env:
    """A virtual environment of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.python = path / "bin" / "python"

    def install(self, *packages: str | Path, editable: bool = False) -> None:
        """Install distributions from folders, wheels or by requirement, with what they depend on."""
        flag = ["--editable"] if editable else []
        arguments = [part for package in packages for part in (*flag, str(package))]
        run([uv.find_uv_bin(), "pip", "install", "--quiet", "--python", str(self.python), *arguments])

    def run(self, *arguments: str, check: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
        """Run this environment's Python."""
        return run([str(self.python), *arguments], check=check, **env)

    def vlmhb(self, *arguments: str, check: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
        """Run this environment's ``vlmhb``."""
        return run([str(self.path / "bin" / "vlmhb"), *arguments], check=check, **env)


def make_env(path: Path, *packages: str | Path, editable: bool = False) -> Env:
    """Make an environment with the Python that runs the tests, and install packages."""
    run([uv.find_uv_bin(), "venv", "--quiet", "--python", sys.executable, str(path)])
    env = Env(path)
    if packages:
        env.install(*packages, editable=editable)
    return env


def run(command: list[str], check: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command and, when ``check`` and it fails, raise with all that it printed."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, capture_output=True, text=True, env={**kept, **env}, check=False)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done
