"""Importing one plugin and checking it against the contract."""

from __future__ import annotations

import pluggy

from vlmhb.contract import CONTRACT_VERSION, hookspecs
from vlmhb.discovery.scan import PluginRef, resolve
from vlmhb.errors import PluginError

_ENGINE_HOOKS = ("vlmhb_backend_info", "vlmhb_load")


def new_manager() -> pluggy.PluginManager:
    """A plugin manager that knows the hooks of the contract and no plugin."""
    manager = pluggy.PluginManager("vlmhb")
    manager.add_hookspecs(hookspecs)
    return manager


def import_plugin(ref: PluginRef) -> object:
    """Import a plugin and return its module or object, checked.

    Raises:
        PluginError: the reason in one line: the import failed, another contract version, a hook with a wrong
            signature or unknown name, or an engine without the hooks that every engine needs.
    """
    try:
        plugin: object = resolve(ref).load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise PluginError(_import_reason(error)) from error
    wanted = getattr(plugin, "vlmhb_contract", CONTRACT_VERSION)
    if wanted != CONTRACT_VERSION:
        raise PluginError(
            f"it is written for version {wanted} of the contract, this vlmhb has version {CONTRACT_VERSION}; "
            f"install a version of {ref.distribution} that fits"
        )
    _check_hooks(ref, plugin)
    return plugin


def _import_reason(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"it left the process on import (exit code {error.code})"
    if isinstance(error, SyntaxError):
        return f"syntax error: {error}"
    return f"{type(error).__name__}: {error}"


def _check_hooks(ref: PluginRef, plugin: object) -> None:
    manager = new_manager()
    try:
        manager.register(plugin, name=ref.name)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        raise PluginError(" ".join(str(error).split())) from error
    hooks = {caller.name for caller in manager.get_hookcallers(plugin) or ()}
    missing = [name for name in _ENGINE_HOOKS if name not in hooks] if ref.kind == "backend" else []
    if missing or not hooks:
        raise PluginError(f"it implements no {', no '.join(missing)}" if missing else "it implements no hook of vlmhb")
