"""Planning: what a good config becomes, and where things are found."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.configs import Bench, backend
from vlmhb.config.job import Job
from vlmhb.config.plan import read_plan_config
from vlmhb.contract.dataset import NamedDataset, NamedModel
from vlmhb.contract.model import ModelSpec
from vlmhb.contract.request import SamplingParams


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def only(bench: Bench, config: str, base: str | None = None, **overrides: object) -> Job:
    (job,) = bench.plan(config, base, **overrides).jobs
    return job


# --- defaults and precedence


def test_the_smallest_config(bench: Bench) -> None:
    plan = bench.plan("dataset,model_name\ncards,tiny\n")
    (job,) = plan.jobs
    assert plan.notes == []
    assert (job.config_row, job.dataset_name, job.task, job.backend, job.model_name) == (1, "cards", "", "hf", "tiny")
    assert job.spec == ModelSpec(model_path=str(bench.root / "tiny"))
    assert job.sampling == SamplingParams()
    assert (job.system_prompt, job.prompts, job.only_evaluate) == (None, None, False)
    assert job.metrics == ("cer", "wer", "exact_match")
    assert job.aggregators == ("general", "by_id", "by_doc_question", "by_doc_type")
    assert job.normalize == ("nfc", "whitespace")
    assert (job.filter_doc_class, job.filter_question_type) == ((), ())
    assert [sample.reference for sample in job.dataset] == ["Иванов", "007", "1,50"]


def test_every_column_of_user_config(bench: Bench) -> None:
    bench.registry.backends["hf"] = backend("hf", devices=("cuda:0", "cuda:1", "cpu"))
    bench.write("prompts.csv", "prompt;doc_class_question_type;cer\nAsk;card name;0\n")
    config = bench.row(
        task="VQA",
        backend="hf",
        system_prompt="Be short.",
        prompt_collection="prompts.csv",
        metrics="['WER', 'CER', 'Exact Match', 'wer']",
        metrics_aggregators="by_doc_type,general",
        only_evaluate_metrics="False",
        filter_doc_class="card",
        filter_question_type="name",
        normalize="nfc,yo",
        sampling_defaults="vlmhb",
        max_tokens="16",
        temperature="0,7",
        top_p="0.9",
        top_k="5",
        repetition_penalty="1.1",
        seed="3",
        stop='["END"]',
        revision="main",
        dtype="float32",
        device="cuda:1",
        max_model_len="4096",
        max_images="2",
        min_pixels="4*28*28",
        max_pixels="1280*28*28",
        model_impl="transformers",
        trust_remote_code="True",
        model_options="batch_size=4,compile=yes",
    )
    job = only(bench, config)
    assert job.sampling == SamplingParams(
        max_tokens=16, temperature=0.7, top_p=0.9, top_k=5, repetition_penalty=1.1, seed=3, stop=("END",)
    )
    assert job.spec == ModelSpec(
        model_path=str(bench.root / "tiny"),
        revision="main",
        dtype="float32",
        device="cuda:1",
        max_model_len=4096,
        max_images=2,
        min_pixels=3136,
        max_pixels=1003520,
        model_impl="transformers",
        trust_remote_code=True,
        options={"batch_size": 4, "compile": True},
    )
    assert (job.task, job.system_prompt) == ("VQA", "Be short.")
    assert job.prompts is not None
    assert job.prompts.prompts == {"card name": "Ask"}
    assert job.metrics == ("wer", "cer", "exact_match")
    assert job.aggregators == ("by_doc_type", "general")
    assert job.normalize == ("nfc", "yo")
    assert (job.filter_doc_class, job.filter_question_type) == (("card",), ("name",))


def test_every_column_of_vlm_base_and_the_row_goes_before_it(bench: Bench) -> None:
    base = (
        "model_name;model_family;backend;model_path;dtype;device;max_pixels;trust_remote_code;model_options\n"
        "M;Family;hf;tiny;bfloat16;cpu;3136;True;batch_size=2,compile=True\n"
    )
    job = only(bench, bench.row(model_name="M"), base)
    assert job.model_family == "Family"
    assert job.spec == ModelSpec(
        model_path=str(bench.root / "tiny"),
        dtype="bfloat16",
        device="cpu",
        max_pixels=3136,
        trust_remote_code=True,
        options={"batch_size": 2, "compile": True},
    )
    job = only(bench, bench.row(model_name="M", dtype="float32", model_options='{"batch_size": 9}'), base)
    assert (job.spec.dtype, job.spec.device) == ("float32", "cpu")
    assert job.spec.options == {"batch_size": 9, "compile": True}


def test_the_command_line_goes_before_everything(bench: Bench) -> None:
    bench.registry.backends["other"] = backend("other")
    base = "model_name;model_path;dtype;model_options\nM;tiny;bfloat16;batch_size=2\n"
    config = bench.row(
        model_name="M", backend="hf", dtype="float16", model_options="batch_size=3", max_tokens="5", seed="1"
    )
    job = only(
        bench,
        config,
        base,
        backend="Other",
        sampling={"max_tokens": 7, "top_p": None},
        model={"dtype": "float32"},
        options={"batch_size": 4},
    )
    assert (job.backend, job.spec.dtype, job.spec.options) == ("other", "float32", {"batch_size": 4})
    assert (job.sampling.max_tokens, job.sampling.seed, job.sampling.top_p) == (7, 1, 1.0)


def test_rows_are_numbered_and_share_what_they_can(bench: Bench) -> None:
    first, second = bench.plan(bench.rows({"max_tokens": "1"}, {"max_tokens": "2"})).jobs
    assert (first.config_row, second.config_row) == (1, 2)
    assert first.dataset is second.dataset
    assert first.spec == second.spec
    assert (first.sampling.max_tokens, second.sampling.max_tokens) == (1, 2)


def test_comments_blank_lines_and_empty_records_are_left_out(bench: Bench) -> None:
    plan = bench.plan("# hello; world\ndataset;model_name\n;\n# more\n\ncards;tiny\n;\n")
    assert [job.config_row for job in plan.jobs] == [2]


# --- backends


@pytest.mark.parametrize("column", ["backend", "framework"])
@pytest.mark.parametrize("written", ["Hugging Face", "HuggingFace", "hf", "transformers", "HF"])
def test_both_columns_and_every_name(bench: Bench, column: str, written: str) -> None:
    assert only(bench, bench.row(**{column: written})).backend == "hf"


def test_both_columns_may_say_the_same(bench: Bench) -> None:
    assert only(bench, bench.row(backend="hf", framework="Hugging Face")).backend == "hf"


def test_a_third_partys_backend_by_its_name(bench: Bench) -> None:
    bench.registry.backends["my-engine"] = backend("my-engine")
    assert only(bench, bench.row(backend="My_Engine")).backend == "my-engine"


def test_an_empty_backend_takes_that_of_vlm_base(bench: Bench) -> None:
    bench.registry.backends["vllm"] = backend("vllm")
    base = "framework;model_name;model_path\nvLLM;M;tiny\n"
    assert only(bench, bench.row(model_name="M"), base).backend == "vllm"


def test_an_empty_backend_takes_the_only_one_that_works(bench: Bench) -> None:
    bench.registry.backends["vllm"] = backend("vllm", problem="no GPU")
    assert only(bench, bench.row(backend="")).backend == "hf"


# --- datasets


@pytest.mark.parametrize("place", ["{name}", "Datasets/VQA/{name}", "Datasets/{name}"])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_where_datasets_are(bench: Bench, place: str, elsewhere: bool) -> None:
    data = bench.root / "elsewhere" if elsewhere else bench.root
    folder = bench.dataset(str((data / place.format(name="mine")).relative_to(bench.root)), "1;t;a;Q;A;c;q;")
    job = only(bench, bench.row(dataset="mine", task="VQA"), data=data)
    assert (job.dataset_name, job.dataset.root) == ("mine", folder)


@pytest.mark.parametrize("written", ["sub/mine", "sub\\mine", "./sub/mine", "sub/mine/annotation.csv"])
def test_datasets_by_path(bench: Bench, written: str) -> None:
    folder = bench.dataset("sub/mine", "1;t;a;Q;A;c;q;")
    assert only(bench, bench.row(dataset=written)).dataset.root == folder
    assert only(bench, bench.row(dataset=str(folder))).dataset.root == folder


def test_a_dataset_that_a_plugin_ships_goes_first(bench: Bench, tmp_path: Path) -> None:
    folder = bench.dataset("shipped-here", "1;t;a;Q;A;c;q;")
    bench.registry.datasets["cards"] = NamedDataset(name="cards", path=str(folder))
    job = only(bench, bench.row())
    assert (job.dataset_name, job.dataset.root) == ("cards", folder)


def test_a_folder_without_annotation_does_not_hide_the_dataset_behind_it(bench: Bench) -> None:
    (bench.root / "mine").mkdir()
    folder = bench.dataset("Datasets/mine", "1;t;a;Q;A;c;q;")
    assert only(bench, bench.row(dataset="mine")).dataset.root == folder


# --- models


@pytest.mark.parametrize("place", ["Models/m", "models/m", "m", "sub/m"])
def test_where_models_are(bench: Bench, place: str) -> None:
    folder = bench.model(place)
    name = place if place.startswith("sub") else "m"
    assert only(bench, bench.row(model_name=name)).spec.model_path == str(folder)


def test_models_of_another_data_folder(bench: Bench) -> None:
    folder = bench.model("data/Models/m")
    assert only(bench, bench.row(model_name="m"), data=bench.root / "data").spec.model_path == str(folder)


def test_a_model_path_is_relative_to_its_own_file(bench: Bench) -> None:
    bench.write("bases/mine.csv", "model_name;model_path\nM;../tiny\n")
    job = only(bench, bench.row(model_name="M"), models=bench.root / "bases/mine.csv")
    assert job.spec.model_path == str(bench.root / "tiny")


def test_what_a_relative_config_names_has_absolute_paths(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("user_config.csv", bench.row(task="VQA"))
    monkeypatch.chdir(bench.root)
    (job,) = read_plan_config(Path("user_config.csv"), bench.registry).jobs
    assert (job.dataset.root, job.spec.model_path) == (bench.root / "cards", str(bench.root / "tiny"))


def test_a_model_that_a_plugin_ships(bench: Bench) -> None:
    bench.registry.models["demo"] = NamedModel(name="demo", path=str(bench.model("made")), family="Fam")
    job = only(bench, bench.row(model_name="demo"))
    assert (job.spec.model_path, job.model_family) == (str(bench.root / "made"), "Fam")
    base = "model_name;model_family;model_path;dtype\ndemo;Own;;float32\n"
    job = only(bench, bench.row(model_name="demo"), base)
    assert (job.spec.model_path, job.model_family, job.spec.dtype) == (str(bench.root / "made"), "Own", "float32")
    job = only(bench, bench.row(model_name="demo"), base.replace(";;", ";tiny;"))
    assert job.spec.model_path == str(bench.root / "tiny")


def test_hub_ids_are_passed_on(bench: Bench) -> None:
    assert only(bench, bench.row(model_name="Qwen/Qwen2-VL-2B-Instruct")).spec.model_path == "Qwen/Qwen2-VL-2B-Instruct"
    base = "model_name;model_path;revision\nM;org/name.v1;abc\n"
    spec = only(bench, bench.row(model_name="M"), base).spec
    assert (spec.model_path, spec.revision) == ("org/name.v1", "abc")


def test_an_engine_without_model_files_takes_the_name(bench: Bench) -> None:
    bench.registry.backends = {"openai": backend("openai", needs_model_files=False)}
    assert only(bench, bench.row(model_name="gpt-x")).spec.model_path == "gpt-x"
    base = "model_name;model_path\ngpt-x;served-name\n"
    assert only(bench, bench.row(model_name="gpt-x"), base).spec.model_path == "served-name"


def test_the_row_of_the_backend_goes_before_the_row_without_one(bench: Bench) -> None:
    bench.registry.backends["vllm"] = backend("vllm")
    base = "backend;model_name;model_path;dtype\n;M;tiny;float16\nvllm;M;tiny;float32\n"
    config = bench.rows({"model_name": "M", "backend": "hf"}, {"model_name": "M", "backend": "vllm"})
    assert [job.spec.dtype for job in bench.plan(config, base).jobs] == ["float16", "float32"]


def test_a_model_known_for_another_backend_only_lends_its_folder_and_says_so(bench: Bench) -> None:
    bench.registry.backends["vllm"] = backend("vllm")
    base = "backend;model_name;model_family;model_path;model_options\nhf;M;Fam;tiny;batch_size=2\n"
    plan = bench.plan(bench.row(model_name="M", backend="vllm"), base)
    (job,) = plan.jobs
    assert (job.spec.model_path, job.model_family, job.spec.options) == (str(bench.root / "tiny"), "Fam", {})
    assert len(plan.notes) == 1
    assert "row for hf" in plan.notes[0]


# --- prompts


@pytest.mark.parametrize("place", ["PromptCollections/VQA/p.csv", "PromptCollections/p.csv", "p.csv"])
def test_where_prompt_collections_are(bench: Bench, place: str) -> None:
    path = bench.write(place, "prompt;doc_class_question_type\nAsk;card name\n")
    job = only(bench, bench.row(task="VQA", prompt_collection="p.csv"))
    assert job.prompts is not None
    assert job.prompts.path == path


@pytest.mark.parametrize("place", ["SystemPrompts/VQA/s.txt", "SystemPrompts/s.txt", "s.txt"])
def test_where_system_prompts_are(bench: Bench, place: str) -> None:
    bench.write(place, "Be short.\n")
    assert only(bench, bench.row(task="VQA", system_prompt="s.txt")).system_prompt == "Be short."


@pytest.mark.parametrize("text", ["You read documents.", "Answer in s.txt style", "a\nb.txt", "x" * 5000, "a; b"])
def test_other_system_prompts_are_the_text_itself(bench: Bench, text: str) -> None:
    assert only(bench, bench.row(system_prompt=text)).system_prompt == text


@pytest.mark.parametrize("cell", ["['p.csv', 'sub/q.csv']", "p.csv,sub/q.csv", "[p.csv; sub/q.csv]"])
def test_several_prompt_collections_are_as_many_jobs_of_one_row(bench: Bench, cell: str) -> None:
    for name in ("p.csv", "sub/q.csv"):
        bench.write(name, f"prompt;doc_class_question_type\n{name};card name\n")
    plan = bench.plan(bench.row(prompt_collection=cell, system_prompt="Be short."))
    assert [(job.config_row, job.prompts_name) for job in plan.jobs] == [
        (1, "p + system prompt"),
        (1, "q + system prompt"),
    ]
    assert [job.prompts and job.prompts.prompts for job in plan.jobs] == [
        {"card name": "p.csv"},
        {"card name": "sub/q.csv"},
    ]
    assert {job.system_prompt for job in plan.jobs} == {"Be short."}


def test_each_collection_with_each_system_prompt(bench: Bench) -> None:
    for name in ("p.csv", "q.csv"):
        bench.write(name, "prompt;doc_class_question_type\na;card name\n")
    for name in ("s.txt", "t.txt"):
        bench.write(f"SystemPrompts/{name}", name)
    plan = bench.plan(bench.row(prompt_collection="p.csv,q.csv", system_prompt="['s.txt', 't.txt']"))
    names = [job.prompts_name for job in plan.jobs]
    assert names == ["p + s", "p + t", "q + s", "q + t"]
    assert [job.system_prompt for job in plan.jobs] == ["s.txt", "t.txt"] * 2


def test_files_with_one_name_are_called_as_written(bench: Bench) -> None:
    for name in ("a/p.csv", "b/p.csv"):
        bench.write(name, "prompt;doc_class_question_type\na;card name\n")
    plan = bench.plan(bench.row(prompt_collection="a/p.csv,b/p.csv"))
    assert [job.prompts_name for job in plan.jobs] == ["a/p.csv", "b/p.csv"]


def test_a_file_whose_name_has_a_comma_is_one_file(bench: Bench) -> None:
    bench.write("p, q.csv", "prompt;doc_class_question_type\na;card name\n")
    assert only(bench, bench.row(prompt_collection="p, q.csv")).prompts_name == "p, q"


@pytest.mark.parametrize("text", ["[Answer briefly.]", "['a', 'b']", "[s.txt, Be short.]", "[not closed", "[]"])
def test_a_system_prompt_in_brackets_is_text_unless_it_lists_files(bench: Bench, text: str) -> None:
    bench.write("s.txt", "Be short.")
    job = only(bench, bench.row(system_prompt=text))
    assert (job.system_prompt, job.prompts_name) == (text, "system prompt")


@pytest.mark.parametrize(
    ("column", "cell"), [("prompt_collection", "p.csv,none.csv"), ("system_prompt", "['s.txt', 'none.txt']")]
)
def test_a_file_of_a_list_that_is_not_there(bench: Bench, column: str, cell: str) -> None:
    bench.write("p.csv", "prompt;doc_class_question_type\na;card name\n")
    bench.write("s.txt", "Be short.")
    fault = bench.fault(bench.row(**{column: cell}))
    assert (fault.row, fault.column) == (1, column)
    assert "none." in fault.message


def test_a_template_with_an_unknown_column_is_a_fault_of_its_file(bench: Bench) -> None:
    path = bench.write("p.csv", "prompt_template;doc_class_question_type\n{question} {unit};card name\n")
    fault = bench.fault(bench.row(prompt_collection="p.csv"))
    assert (fault.file, fault.row, fault.line, fault.column) == (str(path), 1, 2, "prompt_template")
    assert "has no column unit" in fault.message


# --- filters


@pytest.mark.parametrize(
    ("cells", "classes", "types"),
    [
        ({"filter_doc_class": "card"}, ("card",), ()),
        ({"filter_question_type": "sum total"}, (), ("sum total",)),
        ({"filter_doc_class": "['card', 'bill']"}, ("card", "bill"), ()),
        (
            {"filter_doc_class": "bill, card", "filter_question_type": "name,number"},
            ("bill", "card"),
            ("name", "number"),
        ),
        ({"filter_doc_class": "[]"}, (), ()),
    ],
)
def test_filters(bench: Bench, cells: dict[str, str], classes: tuple[str, ...], types: tuple[str, ...]) -> None:
    job = only(bench, bench.row(**cells))
    assert (job.filter_doc_class, job.filter_question_type) == (classes, types)


def test_a_value_that_looks_like_a_list_is_itself_when_the_dataset_has_it(bench: Bench) -> None:
    bench.dataset("odd", "1;t;a;Q;A;card, [old];O'Brien;")
    job = only(bench, bench.row(dataset="odd", filter_doc_class="card, [old]", filter_question_type="O'Brien"))
    assert (job.filter_doc_class, job.filter_question_type) == (("card, [old]",), ("O'Brien",))


def test_without_filters_only_the_header_of_the_dataset_is_read(bench: Bench) -> None:
    bench.dataset("half", '1;t;a;Q;"A;c;q;')
    assert only(bench, bench.row(dataset="half")).dataset_name == "half"


# --- sampling defaults


def generation_config(bench: Bench, text: str) -> None:
    bench.write("tiny/generation_config.json", text)


QWEN = '{"do_sample": true, "temperature": 0.01, "top_p": 0.001, "top_k": 1, "repetition_penalty": 1.05}'


def test_the_models_own_sampling_values_do_not_leak_in(bench: Bench) -> None:
    generation_config(bench, QWEN)
    assert only(bench, bench.row(max_tokens="16", temperature="0")).sampling == SamplingParams(max_tokens=16)
    assert only(bench, bench.row(sampling_defaults="vlmhb")).sampling == SamplingParams()


def test_the_models_own_sampling_values_apply_when_asked_for(bench: Bench) -> None:
    generation_config(bench, QWEN)
    plan = bench.plan(bench.row(sampling_defaults="model", top_k="7"))
    expected = SamplingParams(temperature=0.01, top_p=0.001, top_k=7, repetition_penalty=1.05)
    assert plan.jobs[0].sampling == expected
    assert "temperature=0.01, top_p=0.001, top_k=1, repetition_penalty=1.05" in plan.notes[0]


@pytest.mark.parametrize(
    ("config", "expected", "said"),
    [
        (
            '{"temperature": 0.5, "repetition_penalty": 1.2}',
            SamplingParams(repetition_penalty=1.2),
            "repetition_penalty=1.2",
        ),
        ('{"do_sample": true, "top_p": 0.5}', SamplingParams(temperature=1.0, top_p=0.5), "temperature=1"),
        ('{"max_new_tokens": 99}', SamplingParams(max_tokens=99), "max_tokens=99"),
        ('{"num_beams": 4}', SamplingParams(), "Not used: num_beams"),
        ("{}", SamplingParams(), "none"),
    ],
)
def test_what_a_generation_config_means(bench: Bench, config: str, expected: SamplingParams, said: str) -> None:
    generation_config(bench, config)
    plan = bench.plan(bench.row(sampling_defaults="model"))
    assert plan.jobs[0].sampling == expected
    assert said in plan.notes[0]


# --- scoring only


def test_a_row_that_only_scores_needs_no_model_and_no_engine(bench: Bench) -> None:
    job = only(
        bench, bench.row(only_evaluate_metrics="True", model_name="Gone-7B", backend="vLLM", model_options="x=1")
    )
    assert (job.only_evaluate, job.backend, job.model_name) == (True, "vllm", "Gone-7B")


def test_a_row_that_only_scores_has_the_same_spec_as_when_it_was_generated(bench: Bench) -> None:
    cells = {"model_options": "batch_size=4", "max_tokens": "9"}
    first = only(bench, bench.row(**cells))
    again = only(bench, bench.row(only_evaluate_metrics="True", **cells))
    assert (first.spec, first.sampling) == (again.spec, again.sampling)


# --- notes


def test_columns_of_the_older_project_are_said_once(bench: Bench) -> None:
    base = "framework;model_name;model_path;docker_image;git_python_package;python_package;module;class_name\n"
    plan = bench.plan(bench.rows({"backend": "hf"}, {"backend": "hf"}), base + "Hugging Face;tiny;tiny;i;g;p;m;c\n")
    assert len(plan.notes) == 1
    assert "docker_image, git_python_package, python_package, module, class_name" in plan.notes[0]


def test_an_unknown_column_that_is_like_no_other_is_a_note(bench: Bench) -> None:
    plan = bench.plan(bench.row(comment="hello"))
    assert plan.notes == [f"{bench.root / 'user_config.csv'}: the column comment is not known and not used."]
