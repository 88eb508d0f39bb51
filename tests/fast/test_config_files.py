"""Real files: those of the older project, the test cases, and the example that ``vlmhb init`` writes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.configs import FixedRegistry, backend
from vlmhb.config.example import example_files
from vlmhb.config.job import Overrides, Plan
from vlmhb.config.plan import read_plan_config
from vlmhb.contract.dataset import NamedDataset, NamedModel, Sample
from vlmhb.data.answers import read_answers
from vlmhb.data.images import resolve_image
from vlmhb.data.tables import Table, write_table
from vlmhb.data.vlmhyperbench import VlmHyperBenchFormat
from vlmhb.errors import ConfigError

TESTS = Path(__file__).parents[1]
CASES = {case["id"]: case for case in json.loads((TESTS / "cases/cases.json").read_text(encoding="utf-8"))["cases"]}


@pytest.fixture
def registry(tmp_path: Path) -> FixedRegistry:
    names = ("tiny-model", "tiny-a", "tiny-b", "vlmhb-reader")
    models = {name: NamedModel(name=name, path=str(tmp_path / name)) for name in names}
    return FixedRegistry({name: backend(name) for name in ("hf", "vllm", "sglang")}, {}, models)


def samples(case: str, folder: str = "dataset") -> list[Sample]:
    return list(VlmHyperBenchFormat().open(TESTS / "cases" / case / folder, case))


# --- the older project


@pytest.fixture
def formats(tmp_path: Path) -> Path:
    folder = tmp_path / "formats"
    shutil.copytree(TESTS / "formats", folder)
    for name in ("Qwen2-VL-2B-Instruct", "Qwen2.5-VL-3B-Instruct"):
        (folder / "Models" / name).mkdir(parents=True)
    return folder


def test_the_older_projects_config_works_as_it_is(formats: Path, registry: FixedRegistry) -> None:
    plan = read_plan_config(formats / "user_config.csv", registry)
    first, second = plan.jobs
    assert (first.backend, first.model_name, first.model_family) == ("hf", "Qwen2-VL-2B-Instruct", "Qwen2-VL")
    assert first.spec.model_path == str(formats / "Models/Qwen2-VL-2B-Instruct")
    assert first.metrics == ("cer",)
    assert first.aggregators == ("by_id", "by_doc_question", "by_doc_type", "general")
    assert first.prompts is not None
    assert [first.prompts.prompt_for(sample) is not None for sample in first.dataset] == [True] * 4
    assert (second.model_name, second.model_family) == ("Qwen2.5-VL-3B-Instruct", "Qwen2.5-VL")
    assert (second.metrics, second.aggregators) == (("wer", "cer", "bleu"), ("by_doc_type", "general"))
    assert (second.filter_doc_class, second.filter_question_type) == (("card",), ("Номер",))
    assert (second.prompts, second.only_evaluate) == (None, False)
    assert len(plan.notes) == 1
    assert "docker_image" in plan.notes[0]


def test_the_older_projects_config_with_a_backend_column(formats: Path, registry: FixedRegistry) -> None:
    plan = read_plan_config(formats / "user_config_backend.csv", registry)
    assert [job.backend for job in plan.jobs] == ["hf", "vllm", "sglang"]
    assert len({job.spec.model_path for job in plan.jobs}) == 1


def test_the_older_projects_data_folder_may_be_elsewhere(
    formats: Path, registry: FixedRegistry, tmp_path: Path
) -> None:
    config = tmp_path / "user_config.csv"
    shutil.move(formats / "user_config.csv", config)
    plan = read_plan_config(config, registry, Overrides(data=formats, models=formats / "vlm_base.csv"))
    assert plan.jobs[0].dataset.root == formats / "Datasets/VQA/cards_mini"


def test_the_models_of_the_older_project_without_a_folder_say_what_to_fill(registry: FixedRegistry) -> None:
    with pytest.raises(ConfigError) as caught:
        read_plan_config(TESTS / "formats/user_config.csv", registry)
    assert [(fault.row, fault.column) for fault in caught.value.faults] == [(1, "model_name"), (2, "model_name")]
    assert all("model_path" in str(fault.hint) for fault in caught.value.faults)


# --- the cases


def test_case_1_a_byte_order_mark_and_quotes(registry: FixedRegistry) -> None:
    folder = TESTS / "cases/C01"
    marked, plain = (
        read_plan_config(folder / name, registry).jobs[0] for name in ("user_config.csv", "user_config_plain.csv")
    )
    assert (marked.dataset_name, plain.dataset_name) == ("dataset", "dataset_plain")
    assert list(marked.dataset) == list(plain.dataset)
    assert len(list(marked.dataset)) == CASES["C01"]["expect"]["dataset"]["rows"]
    assert (marked.metrics, marked.sampling, marked.spec) == (plain.metrics, plain.sampling, plain.spec)


def test_case_2_separators_quotes_and_line_breaks(tmp_path: Path) -> None:
    rows = samples("C02")
    assert len(rows) == CASES["C02"]["expect"]["dataset"]["rows"]
    assert rows[0].reference == CASES["C02"]["expect"]["rows"][0]["reference"]
    assert (len(rows[0].reference), rows[0].reference.count("\n"), rows[0].reference.count('"')) == (38, 1, 2)
    write_table(tmp_path / "out.csv", ("row", "reference"), [(row.row, row.reference) for row in rows])
    written = [record.cells[1] for record in Table(tmp_path / "out.csv").records()]
    assert written == [row.reference for row in rows]
    assert read_answers(TESTS / "cases/C02/answers.csv", 3).by_row[1].text == rows[0].reference


def test_case_3_texts_that_look_like_missing_values() -> None:
    rows = samples("C03")
    assert [row.reference for row in rows] == [row["reference"] for row in CASES["C03"]["expect"]["rows"]]
    assert sorted(row.doc_class for row in rows) == ["NA"] * 3 + ["null"] * 3
    assert {row.question_type for row in rows} == {"nan"}


def test_case_4_leading_and_trailing_zeros() -> None:
    rows = samples("C04")
    assert [row.reference for row in rows] == [row["reference"] for row in CASES["C04"]["expect"]["rows"]]
    assert [row.data_index for row in rows] == CASES["C04"]["expect"]["by_id"]


def test_case_5_one_document_several_rows() -> None:
    rows = samples("C05")
    assert [row.row for row in rows] == [1, 2, 3, 4, 5]
    assert [row.data_index for row in rows] == ["1", "1", "1", "2", "2"]


def test_case_12_paths_written_on_windows() -> None:
    root = TESTS / "cases/C12/dataset"
    found = [resolve_image(root, row.images[0]) for row in samples("C12")]
    assert found == [root / name for name in ("images/a.png", "images/sub/b.png", "images/a.png", "images/a.png")]


def test_case_20_another_model_and_another_engine(registry: FixedRegistry) -> None:
    plan = read_plan_config(TESTS / "cases/C20/user_config.csv", registry)
    assert [job.model_name for job in plan.jobs] == ["tiny-a", "tiny-b"]
    assert read_plan_config(TESTS / "cases/C20/other_engine.csv", registry).jobs[0].backend == "vllm"


def test_case_21_sampling_is_the_same_on_each_engine(registry: FixedRegistry) -> None:
    model = NamedModel(name="tiny-model", path=str(TESTS / "cases/C21/model"))
    registry.models = {"tiny-model": model}
    plan = read_plan_config(TESTS / "cases/C21/user_config.csv", registry)
    expected = CASES["C21"]["expect"]["sampling"]
    assert [job.backend for job in plan.jobs] == ["hf", "vllm", "sglang"]
    for job in plan.jobs:
        assert {name: getattr(job.sampling, name) for name in expected} == expected


def mentions_all(fault: Any, expected: dict[str, Any]) -> bool:
    return all(text in f"{fault.message} {fault.value} {fault.hint}" for text in expected["mentions"])


@pytest.mark.parametrize("installed", [("hf", "vllm"), ("hf",)])
def test_case_28_four_faults_in_three_rows(registry: FixedRegistry, installed: tuple[str, ...]) -> None:
    registry.backends = {name: backend(name) for name in installed}
    with pytest.raises(ConfigError) as caught:
        read_plan_config(TESTS / "cases/C28/user_config.csv", registry)
    expected = CASES["C28"]["expect"]["config"]["errors"]
    faults = caught.value.faults
    assert [(fault.row, fault.column) for fault in faults] == [(error["row"], error["column"]) for error in expected]
    assert all(mentions_all(fault, error) for fault, error in zip(faults, expected, strict=True))


def test_case_24_an_engine_that_cannot_be_imported(registry: FixedRegistry) -> None:
    reason = "ModuleNotFoundError: No module named 'a_package_that_is_not_installed'"
    registry.backends["engine_missing"] = backend("engine_missing", problem=reason)
    with pytest.raises(ConfigError) as caught:
        read_plan_config(TESTS / "cases/C24/user_config.csv", registry)
    (fault,) = caught.value.faults
    (expected,) = CASES["C24"]["expect"]["config"]["errors"]
    assert (fault.row, fault.column) == (expected["row"], expected["column"])
    assert mentions_all(fault, expected)
    assert reason in fault.message


# --- the example


def example(folder: Path, registry: FixedRegistry, mark: str = "") -> Plan:
    for name, text in example_files().items():
        (folder / name).write_text(mark + text, encoding="utf-8")
    dataset = TESTS / "cases/C01/dataset"
    registry.datasets = {"demo-documents": NamedDataset(name="demo-documents", path=str(dataset))}
    registry.backends = {"hf": backend("hf")}
    return read_plan_config(folder / "user_config.csv", registry)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_the_example_works_as_it_is(tmp_path: Path, registry: FixedRegistry, mark: str) -> None:
    plan = example(tmp_path, registry, mark)
    (job,) = plan.jobs
    assert plan.notes == []
    assert (job.dataset_name, job.backend, job.model_name) == ("demo-documents", "hf", "vlmhb-reader")
    assert (job.model_family, job.spec.dtype, job.sampling.max_tokens) == ("Qwen2-VL", "float32", 256)


def test_the_example_explains_the_columns_that_it_has() -> None:
    for text in example_files().values():
        comments = [line for line in text.splitlines() if line.startswith("#")]
        header = next(line for line in text.splitlines() if not line.startswith("#")).split(";")
        explained = "\n".join(comments)
        assert [name for name in header if name not in explained and name not in ("dtype", "model_family")] == []
