"""Writing a report: every section in its place, one page, and the summary for a pull request."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

import vlmhb
from vlmhb.contract.report import Fragment, ReportSection
from vlmhb.discovery.registry import Registry
from vlmhb.errors import RunError
from vlmhb.report.exports import TablesFolder
from vlmhb.report.load import load_run
from vlmhb.report.render import asset, markdown_text, template
from vlmhb.report.texts import Texts
from vlmhb.report.view import RunsView
from vlmhb.run.folder import RunFolder
from vlmhb.whole import written_whole

MOST_SAMPLES = 20_000
MOST_PAGES = 1_000


class Written(msgspec.Struct, frozen=True):
    """Where the report is, and what its maker and its readers should know."""

    index: Path
    notes: tuple[str, ...]


def write_report(
    runs: Sequence[Path],
    registry: Registry,
    folder: Path,
    *,
    language: str = "en",
    most_samples: int | None = MOST_SAMPLES,
    most_pages: int | None = MOST_PAGES,
) -> Written:
    """Write ``index.html``, ``report.md`` and ``tables/`` with all they need into a folder, from the run folders alone.

    Args:
        runs: run folders; none is changed.
        registry: where metrics and sections are found.
        folder: where the report goes; an earlier one is replaced, images that are still right are kept.
        language: one of :data:`vlmhb.report.texts.LANGUAGES`.
        most_samples: how many samples the viewer takes, those answered wrong first; None for all.
        most_pages: how many page images the report holds, those of wrong answers first; None for all.

    Raises:
        RunError: a folder holds no run, or the report cannot be written.
    """
    loaded = [load_run(run, registry) for run in runs]
    view = RunsView(loaded, registry.metrics(), folder, language, most_samples, most_pages)
    if not view.entries:
        raise RunError(f"{', '.join(map(str, runs))}: the run has no jobs yet, so there is nothing to report")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tables = TablesFolder(folder)
        parts, notes = _parts(view, registry.report_sections(), tables)
        tables.finish()
        _replace(folder / "report.md", _markdown(view, parts))
        _replace(folder / "index.html", _page(view, parts))
    except OSError as error:
        raise RunError(f"the report cannot be written to {folder}: {error.strerror or error}") from error
    return Written(folder / "index.html", (*view.notes, *notes))


def report_of_run(folder: Path, registry: Registry) -> list[str]:
    """Write the report of a finished run into its folder; whatever happens, the run is not harmed.

    Returns:
        What the user should know, in sentences; why there is no report, if there is none.
    """
    try:
        return list(write_report([folder], registry, RunFolder(folder).report).notes)
    except Exception as error:  # noqa: BLE001 - the answers are safe already; no fault of a report may hide them
        reason = str(error) if isinstance(error, RunError) else f"{type(error).__name__}: {error}"
        return [f"the report could not be written: {reason}. 'vlmhb report {folder}' tries again."]


def _parts(
    view: RunsView, sections: Sequence[ReportSection], tables: TablesFolder
) -> tuple[list[dict[str, Any]], list[str]]:
    """Each section that has something to show; what a section raises stands in its place."""
    parts, notes = [], []
    for section in sections:
        files: list[str] = []
        try:
            title, fragment = section.title(view), section.render(view)
            for name, table in (section.tables(view) if fragment else {}).items():
                files += tables.add(name, table)
        except Exception as error:  # noqa: BLE001 - a third party's code may raise anything; the others go on
            reason = view.text("page.failed", name=section.name, reason=f"{type(error).__name__}: {error}")
            notes.append(reason)
            title, fragment = section.name, Fragment(html=reason, markdown=f"{markdown_text(reason)}\n")
        if fragment is not None:
            shown = {"html": fragment.html, "markdown": fragment.markdown, "files": files}
            parts.append({"name": section.name, "title": title, **shown})
    return parts, notes


def _page(view: RunsView, parts: list[dict[str, Any]]) -> str:
    texts = {key: view.text(f"js.{key}") for key in Texts(view.language).starting_with("js.")}
    return template(
        "page.html.j2",
        language=view.language,
        title=_title(view),
        parts=parts,
        style=_inline(asset("style.css")),
        scripts=[_inline(asset(name)) for name in ("page.js", "diff.js", "viewer.js")],
        texts=_inline(_script_json(texts)),
        viewer=any(part["name"] == "samples" for part in parts) and (view.folder / "samples" / "index.js").is_file(),
        made=_made(view),
        text=view.text,
    )


def _markdown(view: RunsView, parts: list[dict[str, Any]]) -> str:
    blocks = [f"# {markdown_text(_title(view))}\n"]
    blocks += [f"## {markdown_text(part['title'])}\n\n{part['markdown']}" for part in parts if part["markdown"]]
    return "\n".join([*blocks, f"{markdown_text(_made(view))}\n"])


def _title(view: RunsView) -> str:
    names = [run.resolve().name for run in view.manifests]
    return view.text("page.title", names=", ".join(names))


def _made(view: RunsView) -> str:
    return view.text("page.made", version=vlmhb.__version__, date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"))


def _inline(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)  # our own files, and JSON made for scripts


def _script_json(value: object) -> str:
    from vlmhb.report.viewer import script_json

    return script_json(value)


def _replace(path: Path, text: str) -> None:
    with written_whole(path) as beside:
        beside.write_text(text, encoding="utf-8")
