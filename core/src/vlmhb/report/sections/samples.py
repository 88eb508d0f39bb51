"""Every answer beside its page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlmhb.contract.report import Fragment, ReportSection, ReportView
from vlmhb.report.render import template

if TYPE_CHECKING:
    import polars


class SamplesSection(ReportSection):
    """The sample viewer; writes its data and the page images beside the page."""

    name = "samples"
    place = 60

    def title(self, view: ReportView) -> str:
        """The heading."""
        return view.text("samples.title")

    def render(self, view: ReportView) -> Fragment:
        """The viewer's frame; its script fills it from the files written here."""
        from vlmhb.report.view import RunsView
        from vlmhb.report.viewer import write_viewer

        assert isinstance(view, RunsView), "the core's own view, which knows the limits and the image files"
        notes = write_viewer(view)
        return Fragment(html=template("samples.html.j2", text=view.text, notes=notes, entries=view.entries))

    def tables(self, view: ReportView) -> dict[str, polars.DataFrame]:
        """One line an entry and sample of the viewer."""
        from vlmhb.report.exports import samples_table
        from vlmhb.report.view import RunsView

        assert isinstance(view, RunsView)
        return {"samples": samples_table(view)}
