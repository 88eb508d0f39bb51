"""Running the examples of a page of the documentation, and comparing what it says with what is printed.

Every page has a scratch folder of its own, in which its blocks are run from top to bottom. With ``VLMHB_WRITE_DOCS=1``
in the environment, outputs of console blocks that are no longer true are written into the pages; read the difference
before you commit it.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from support.docs import Block, blocks
from support.envs import Env

HOME = "/home/me"
WRITE = os.environ.get("VLMHB_WRITE_DOCS") == "1"


def run_examples(page: Path, env: Env, folder: Path) -> None:
    """Write the files of a page and run its tested blocks.

    Args:
        page: the page.
        env: what the examples run in.
        folder: the scratch folder.
    """
    for block in blocks(page):
        if block.marker == "file":
            path = folder / block.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.marker == "tested":
            RUNNERS[block.language](block, env, folder)


def run_console(block: Block, env: Env, folder: Path) -> None:
    """Run the commands of a block one after the other and compare what each prints, both streams together."""
    code = 0
    written = ""
    for command, expected in commands(block):
        said, code = shell(command, env, folder, code)
        if not matches(expected, said):
            place = f"{block.page.name}:{block.line}: $ {command}"
            assert WRITE, f"{place}\n--- the page says\n{expected}\n--- it prints\n{said}"
            expected = f"{tidy(said)}\n" if said.strip() else ""
        written += f"$ {command}\n{expected}"
    if written != block.text:
        block.page.write_text(block.page.read_text("utf-8").replace(block.text, written, 1), "utf-8")


def run_python(block: Block, env: Env, folder: Path) -> None:
    """Run a block; the comments behind its prints are what it must print."""
    script = folder / "example.py"
    script.write_text(block.text, encoding="utf-8")
    said, code = shell("python example.py", env, folder, 0)
    place = f"{block.page.name}:{block.line}"
    assert code == 0, f"{place}\n{said}"
    expected = "".join(f"{text}\n" for text in re.findall(r"^ *print\(.*\)  # (.*)$", block.text, re.MULTILINE))
    assert matches(expected, said), f"{place}\n--- the page says\n{expected}\n--- it prints\n{said}"


RUNNERS = {"console": run_console, "python": run_python}


def commands(block: Block) -> list[tuple[str, str]]:
    """The commands of a console block with what each prints."""
    parts = re.split(r"^\$ (.*)\n", block.text, flags=re.MULTILINE)
    assert not parts[0], f"{block.page.name}:{block.line}: the block must begin with a command"
    return list(zip(parts[1::2], parts[2::2], strict=True))


def shell(command: str, env: Env, folder: Path, code: int) -> tuple[str, int]:
    """Run a command as a reader would type it; the exit code before it is in ``$?``. Its folder is called /home/me."""
    values = {**os.environ, "PATH": f"{env.path / 'bin'}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "80"}
    values |= {"LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1", "VLMHB_HOME": str(env.path.parent / "data")}
    script = f"(exit {code}); {command}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=values,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        check=False,
    )
    return done.stdout.replace(str(folder.resolve()), HOME), done.returncode


def matches(expected: str, said: str) -> bool:
    """Whether the text is what the page says; ``...`` stands for any text, spaces at line ends do not count."""
    pattern = ".*?".join(re.escape(part) for part in tidy(expected).split("..."))
    return re.fullmatch(pattern, tidy(said), re.DOTALL) is not None


def tidy(text: str) -> str:
    """A text without spaces at its line ends and empty lines around it."""
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines()).strip("\n")
