"""The scripted engine under other names."""

from vlmhb_scripted import (
    vlmhb_backend_info,
    vlmhb_check_model,
    vlmhb_contract,
    vlmhb_environment,
    vlmhb_load,
    vlmhb_make_twin,
)

__all__ = [
    "vlmhb_backend_info",
    "vlmhb_check_model",
    "vlmhb_contract",
    "vlmhb_environment",
    "vlmhb_load",
    "vlmhb_make_twin",
]
