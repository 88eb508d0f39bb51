"""The core's own sections, offered through the same hook as anybody else's."""

from __future__ import annotations

from vlmhb.contract.hookspecs import hookimpl
from vlmhb.contract.report import ReportSection


@hookimpl
def vlmhb_report_sections() -> list[ReportSection]:
    """The core's sections, in their order."""
    from vlmhb.report.sections.analysis import AnalysisSection
    from vlmhb.report.sections.bench import BenchSection
    from vlmhb.report.sections.failures import FailuresSection
    from vlmhb.report.sections.heatmap import HeatmapSection
    from vlmhb.report.sections.leaderboard import LeaderboardSection
    from vlmhb.report.sections.manifest import ManifestSection
    from vlmhb.report.sections.prompts import PromptsSection
    from vlmhb.report.sections.samples import SamplesSection
    from vlmhb.report.sections.speed import SpeedSection
    from vlmhb.report.sections.summary import SummarySection
    from vlmhb.report.sections.tradeoff import TradeoffSection

    return [
        SummarySection(),
        LeaderboardSection(),
        PromptsSection(),
        TradeoffSection(),
        HeatmapSection(),
        AnalysisSection(),
        SamplesSection(),
        SpeedSection(),
        BenchSection(),
        FailuresSection(),
        ManifestSection(),
    ]
