"""What a managed environment for SGLang holds: the versions that this plugin was tried with."""

from __future__ import annotations

from vlmhb import EnvironmentRecipe

SGLANG = "sglang==0.5.23"

_IMPORTS = "from sglang.srt.entrypoints.engine import Engine"
_ON_CPU = "from sglang.srt.platforms import current_platform as p; assert p.is_out_of_tree() and p.device_type == 'cpu'"


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
            verify=f"{_IMPORTS}\n{_ON_CPU}",
            note="SGLang brings its CUDA libraries along, so the download is large although they are not used.",
        )
    return EnvironmentRecipe(requirements=(SGLANG,), disk_bytes=10_000_000_000, verify=_IMPORTS)
