"""What ``vlmhb bench`` measured for a run's model, where its result lies in the run's folder."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from vlmhb.contract.report import Fragment, ReportSection, ReportView
from vlmhb.errors import ConfigError

FOLDER = "bench"
"""Folder below the run's for ``vlmhb bench --out``."""


class BenchSection(ReportSection):
    """The tables and the plot of ``bench.html``, for each run that has them."""

    name = "bench"
    place = 75

    def title(self, view: ReportView) -> str:
        """The heading."""
        return view.text("bench.title")

    def render(self, view: ReportView) -> Fragment | None:
        """Nothing where nothing was measured."""
        found = list(_found(view))
        if not found:
            return None
        return Fragment(html=Markup("").join(html for html, _ in found), markdown="\n".join(text for _, text in found))


def _found(view: ReportView) -> Iterator[tuple[Markup, str]]:
    """Markup and Markdown of each result; of one that cannot be read, why."""
    from vlmhb.bench.figures import figures_of
    from vlmhb.bench.page import heading, parts
    from vlmhb.bench.result import read_bench
    from vlmhb.report.render import markdown_text

    for folder in view.manifests:
        if not (folder / FOLDER).is_dir():
            continue
        try:
            bench = read_bench(folder / FOLDER)
        except ConfigError as error:
            yield Markup("<p>{}</p>").format(error), markdown_text(str(error))
            continue
        shown = list(parts(bench, figures_of(bench)))
        title = Markup("<h3>{}</h3>").format(heading(bench))
        text = "\n".join([f"### {markdown_text(heading(bench))}\n", *(part.markdown() for part in shown)])
        yield title + Markup("").join(part.html() for part in shown), text
