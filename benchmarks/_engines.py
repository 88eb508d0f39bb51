"""Which engines a benchmark can measure on this machine."""

from __future__ import annotations

ENGINES = ("hf", "vllm", "sglang")


def installed() -> str:
    """The engines that have an environment, comma-separated; says which have none."""
    from vlmhb.environments.manage import find_environment

    found = [name for name in ENGINES if find_environment(name, rebuild=print) is not None]
    for name in ENGINES:
        if name not in found:
            print(f"left out: there is no environment for {name} (vlmhb env create {name})")
    return ",".join(found)
