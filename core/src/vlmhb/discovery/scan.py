"""Which plugins are installed: read from package metadata alone, nothing is imported."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Literal

import msgspec

BACKEND_GROUPS = ("vlmhb.backends", "vlmhb")
PLUGIN_GROUP = "vlmhb.plugins"


class PluginRef(msgspec.Struct, frozen=True, kw_only=True):
    """One entry point of one installed distribution."""

    kind: Literal["backend", "plugin"]
    name: str
    value: str
    distribution: str
    version: str


class PluginProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A plugin that is left out, and why."""

    plugin: PluginRef
    reason: str


def scan() -> tuple[list[PluginRef], list[PluginProblem]]:
    """All plugins of this environment, sorted by kind and name, and those left out because their name is taken.

    A backend name claimed by several distributions belongs to the one called ``vlmhb-<name>``, or else to the first
    in alphabetical order; the others are problems.
    """
    found = entry_points()
    refs = [_ref("backend", point) for group in BACKEND_GROUPS for point in found.select(group=group)]
    refs += [_ref("plugin", point) for point in found.select(group=PLUGIN_GROUP)]
    return _settle_names(refs)


def _ref(kind: Literal["backend", "plugin"], point: EntryPoint) -> PluginRef:
    dist = point.dist
    return PluginRef(
        kind=kind,
        name=point.name,
        value=point.value,
        distribution=dist.name if dist else "unknown distribution",
        version=dist.version if dist else "",
    )


def _settle_names(refs: Iterable[PluginRef]) -> tuple[list[PluginRef], list[PluginProblem]]:
    def rank(ref: PluginRef) -> tuple[str, str, bool, str]:
        return ref.kind, ref.name, ref.distribution.lower().replace("_", "-") != f"vlmhb-{ref.name}", ref.distribution

    owners: dict[tuple[str, str], PluginRef] = {}
    problems = []
    for ref in sorted(refs, key=rank):
        owner = owners.setdefault((ref.kind, ref.name), ref)
        if owner is not ref and (owner.distribution, owner.value) != (ref.distribution, ref.value):
            reason = (
                f"the name {ref.name!r} is taken by {owner.distribution} {owner.version}; "
                f"uninstall one of the two distributions"
            )
            problems.append(PluginProblem(plugin=ref, reason=reason))
    return list(owners.values()), problems


def resolve(ref: PluginRef) -> EntryPoint:
    """The entry point to import a plugin with."""
    return EntryPoint(name=ref.name, value=ref.value, group=PLUGIN_GROUP)
