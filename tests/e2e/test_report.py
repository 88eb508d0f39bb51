"""``vlmhb report`` and the report at the end of other commands."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.envs import ROOT
from support.runs import write_csv
from support.scripts import ScriptFile

from .conftest import Cli

CASES = Path(__file__).parents[1] / "cases"


@pytest.fixture
def config(tmp_path: Path, script: ScriptFile) -> Path:
    """Case C18's dataset, of which one row cannot be asked, on two engines."""
    shutil.copytree(CASES / "C18" / "dataset", tmp_path / "dataset")
    rows = [{"dataset": "dataset", "backend": name, "model_name": "tiny"} for name in ("hf", "vllm")]
    return write_csv(tmp_path / "config.csv", rows)


def text_of(folder: Path) -> str:
    return (folder / "index.html").read_text(encoding="utf-8")


def test_a_run_ends_with_its_report(config: Path, tmp_path: Path, cli: Cli) -> None:
    done = cli("run", config, "--out", tmp_path / "out", code=1)
    assert f"Report: {tmp_path / 'out' / 'report' / 'index.html'}" in done.stdout
    page = text_of(tmp_path / "out" / "report")
    assert "tiny · hf" in page
    assert "tiny · vllm" in page
    assert "Could not be asked" in page
    assert (tmp_path / "out" / "report" / "report.md").is_file()


def test_it_is_built_again_from_the_run_folder_alone(config: Path, tmp_path: Path, cli: Cli) -> None:
    cli("run", config, "--out", tmp_path / "out", code=1)
    before = text_of(tmp_path / "out" / "report")
    for name in ("answers.csv", "report", "metrics"):
        path = tmp_path / "out" / name
        path.unlink() if path.is_file() else shutil.rmtree(path)
    shutil.rmtree(tmp_path / "dataset")
    config.unlink()
    done = cli("report", tmp_path / "out")
    assert f"Report: {tmp_path / 'out' / 'report' / 'index.html'}" in done.stdout
    again = text_of(tmp_path / "out" / "report")
    assert again.split("<footer")[0].split('id="samples"')[0] == before.split("<footer")[0].split('id="samples"')[0]


def test_several_runs_in_one_report_in_russian(config: Path, tmp_path: Path, cli: Cli) -> None:
    cli("run", config, "--out", tmp_path / "runs" / "one", code=1)
    cli("run", config, "--out", tmp_path / "runs" / "two", "--limit", "2")
    done = cli("report", tmp_path / "runs" / "one", tmp_path / "runs" / "two", "--lang", "ru")
    folder = tmp_path / "runs" / "report"
    assert str(folder / "index.html") in done.stdout
    page = text_of(folder)
    assert "Отчёт: one, two" in page
    assert "tiny · hf · two" in page
    assert "Отвечены разные строки" in page


@pytest.mark.slow
def test_scoring_again_brings_the_report_up_to_date(config: Path, tmp_path: Path, cli: Cli) -> None:
    cli("run", config, "--out", tmp_path / "out", code=1)
    assert "ANLS" not in text_of(tmp_path / "out" / "report")
    cli("score", tmp_path / "out", "--metrics", "ANLS", code=1)
    assert "ANLS" in text_of(tmp_path / "out" / "report")
    cli("report", tmp_path / "out")
    assert "ANLS" in text_of(tmp_path / "out" / "report")


@pytest.mark.slow
def test_a_benchmark_in_the_runs_folder_is_a_section(config: Path, tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "out"
    cli("run", config, "--out", out, code=1)
    assert 'id="bench"' not in text_of(out / "report")
    workload = ("--pages", "1", "--size", "200x280", "--questions", "2", "--repeats", "1")
    cli("bench", "<b>tiny</b>", "-b", "hf,vllm", *workload, "--out", out / "bench")
    cli("report", out)
    page = text_of(out / "report")
    assert '<section id="bench"' in page
    assert "&lt;b&gt;tiny&lt;/b&gt;: hf, vllm" in page
    assert "<b>tiny" not in page
    assert "Latency over throughput" in page
    assert "| requests/s |" in (out / "report" / "report.md").read_text(encoding="utf-8")
    (out / "bench" / "bench.json").write_text("{}", encoding="utf-8")
    cli("report", out)
    assert "is no result of vlmhb bench" in text_of(out / "report")


@pytest.mark.parametrize(("case", "said"), [("C14", "7.000"), ("C18", "0.667"), ("C26", "n/a <small>n=2, ✗2</small>")])
def test_cases(case: str, said: str, tmp_path: Path, cli: Cli) -> None:
    folder = Path(shutil.copytree(CASES / case, tmp_path / case))
    code = 0 if case == "C14" else 1
    options = ("--metrics", "CER,WER,exact_match", "--out", tmp_path / "out")
    cli("score", "-d", folder / "dataset", "-a", folder / "answers.csv", *options, code=code)
    page = text_of(tmp_path / "out" / "report").replace("<bdi>", "").replace("</bdi>", "")
    assert said in page


def test_case_c27_shows_markup_as_text(tmp_path: Path, cli: Cli) -> None:
    folder = Path(shutil.copytree(CASES / "C27", tmp_path / "C27"))
    cli("score", "-d", folder / "dataset", "-a", folder / "answers.jsonl", "--out", tmp_path / "out")
    page = text_of(tmp_path / "out" / "report")
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script" not in (tmp_path / "out" / "report" / "samples" / "0.js").read_text(encoding="utf-8")


def test_refusals_are_sentences(tmp_path: Path, cli: Cli) -> None:
    done = cli("report", tmp_path / "nothing", code=2)
    assert "holds no run" in done.stderr
    assert not (tmp_path / "nothing").exists()
    assert "Invalid value" in cli("report", tmp_path, "--lang", "de", code=2).stderr
    assert "Missing argument" in cli("report", code=2).stderr


def test_a_report_that_cannot_be_written_does_not_lose_the_run(config: Path, tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "report").write_text("a file in the way")
    done = cli("run", config, "--out", tmp_path / "out", code=1)
    assert "the report could not be written" in done.stderr
    assert (tmp_path / "out" / "answers.csv").is_file()
    assert (tmp_path / "out" / "manifest.json").is_file()


def test_the_picture_in_the_documentation_is_small() -> None:
    assert (ROOT / "docs" / "images" / "report.png").stat().st_size < 200_000
