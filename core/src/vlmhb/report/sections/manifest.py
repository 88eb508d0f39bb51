"""With what and on what the runs were made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vlmhb.contract.report import Fragment, ReportSection, ReportView
from vlmhb.report.render import template


class ManifestSection(ReportSection):
    """Each run's manifest as names and values; the long lists folded away."""

    name = "manifest"
    place = 90

    def title(self, view: ReportView) -> str:
        """The heading."""
        return view.text("manifest.title")

    def render(self, view: ReportView) -> Fragment:
        """What each run stores about itself; a run scored from given answers has jobs only."""
        runs = []
        for folder, manifest in view.manifests.items():
            rest = {key: value for key, value in manifest.items() if key not in ("jobs", "models", "environment")}
            jobs = [(e.label, list(_flat(e.description))) for e in view.entries if e.run == folder]
            models = [
                (f"{m.get('model_name')} · {m.get('backend')}", list(_flat(m)))
                for m in manifest.get("models", ())
                if isinstance(m, Mapping)
            ]
            runs.append(
                {
                    "name": folder.resolve().name,
                    "facts": list(_flat(rest)),
                    "parts": [
                        (view.text("manifest.jobs"), jobs),
                        (view.text("manifest.models"), models),
                        (view.text("manifest.environment"), [("", list(_flat(manifest.get("environment", {}))))]),
                    ],
                }
            )
        return Fragment(html=template("manifest.html.j2", runs=runs, text=view.text))


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Names and values, nested names joined by points; what has no value is left out."""
    for name, one in value.items():
        if isinstance(one, Mapping):
            yield from _flat(one, f"{prefix}{name}.")
        elif one not in (None, "", [], ()):
            yield f"{prefix}{name}", ", ".join(map(str, one)) if isinstance(one, list) else str(one)
