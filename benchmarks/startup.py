"""How long the command line takes to start, as a ratio to ``python -c "import click"``, in alternating rounds.

Exit code 1 when ``vlmhb --help`` takes more than 3 times or ``vlmhb backends`` more than 5 times as long, or when one
of them imports a heavy package.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from _results import record

VLMHB = str(Path(sys.executable).with_name("vlmhb"))
COMMANDS = {
    "import click": [sys.executable, "-c", "import click"],
    "vlmhb --help": [VLMHB, "--help"],
    "vlmhb backends": [VLMHB, "backends"],
}
ENV = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""A second start finds compiled modules, as a user's does; without them all would be compiled at each."""
LIMITS = {"vlmhb --help": 3.0, "vlmhb backends": 5.0}
HEAVY = ("torch", "transformers", "vllm", "sglang", "polars", "numpy", "PIL", "rich")


def seconds(command: list[str]) -> float:
    """CPU seconds (user and system) of one run of a command."""
    before = os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=ENV)
    after = os.times()
    return (after.children_user - before.children_user) + (after.children_system - before.children_system)


def wall(command: list[str]) -> float:
    """Wall seconds of one run of a command."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=ENV)
    return time.perf_counter() - start


def heavy_imports(arguments: list[str]) -> list[str]:
    """Heavy packages that a vlmhb command imports."""
    code = (
        "import sys; from vlmhb.cli import main; sys.argv = ['vlmhb', *sys.argv[1:]]\n"
        "try: main()\nexcept SystemExit: pass\n"
        f"print(*[name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True)
    return done.stderr.split()


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    for command in COMMANDS.values():
        wall(command)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, command in COMMANDS.items():
            times[name].append((wall(command), seconds(command)))
    failed = False
    base = times["import click"]
    for name, found in times.items():
        ratios = [median(t[k] / b[k] for t, b in zip(found, base, strict=True)) for k in (0, 1)]
        limit = LIMITS.get(name)
        if limit is not None:
            failed |= not record(f"`{name}` with `import click`", ratios[0], limit)
        milliseconds = median(t[0] for t in found) * 1000
        print(f"{name:16} {milliseconds:7.0f} ms wall, ratio {ratios[0]:.2f} wall, {ratios[1]:.2f} CPU", end="")
        print(f" (limit {limit:g})" if limit else "")
    for name, command in COMMANDS.items():
        if name.startswith("vlmhb"):
            heavy = heavy_imports(command[1:])
            failed |= bool(heavy)
            print(f"{name:16} heavy imports: {', '.join(heavy) or 'none'}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
