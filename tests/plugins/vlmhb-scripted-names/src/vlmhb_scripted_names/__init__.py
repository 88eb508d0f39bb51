"""The scripted engine under other names."""

from vlmhb_scripted import vlmhb_backend_info, vlmhb_contract, vlmhb_environment, vlmhb_load

__all__ = ["vlmhb_backend_info", "vlmhb_contract", "vlmhb_environment", "vlmhb_load"]
