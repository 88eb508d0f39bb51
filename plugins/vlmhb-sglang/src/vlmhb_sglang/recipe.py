"""What a managed environment for SGLang holds: the versions that this plugin was tried with."""

from __future__ import annotations

from vlmhb import EnvironmentRecipe

SGLANG = "sglang==0.5.23"

_IMPORTS = "from sglang.srt.entrypoints.engine import Engine"


def recipe(device: str) -> EnvironmentRecipe:
    """The environment for one kind of device. SGLang's one wheel serves both: this plugin brings the CPU platform.

    Args:
        device: ``cpu`` or ``cuda``.
    """
    if device == "cpu":
        return EnvironmentRecipe(
            requirements=(SGLANG,),
            disk_bytes=10_000_000_000,
            env={"CUDA_VISIBLE_DEVICES": "", "SGLANG_USE_CPU_ENGINE": "0"},
            verify=f"{_IMPORTS}\nfrom sglang.srt.platforms import current_platform\nassert current_platform.is_out_of_tree()",
            note="SGLang brings its CUDA libraries along, so the download is large although they are not used.",
        )
    return EnvironmentRecipe(requirements=(SGLANG,), disk_bytes=10_000_000_000, verify=_IMPORTS)
