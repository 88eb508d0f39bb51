"""Planning: everything that is wrong with a config is said at once, each with its place and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from support.configs import Bench, backend
from support.envs import ROOT
from vlmhb.cli.app import app
from vlmhb.config.plan import read_plan_config
from vlmhb.errors import ConfigError, Fault


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def whole(fault: Fault) -> str:
    return f"{fault.message} {fault.hint or ''}"


def place(fault: Fault) -> tuple[str, int | None, int | None, str | None]:
    return Path(str(fault.file)).name, fault.row, fault.line, fault.column


# --- the file as a whole


def test_a_missing_file(bench: Bench) -> None:
    with pytest.raises(ConfigError, match=r"none\.csv: the file cannot be read: No such file"):
        read_plan_config(bench.root / "none.csv", bench.registry)


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n"])
def test_an_empty_file(bench: Bench, text: str) -> None:
    assert "empty" in bench.fault(text).message


@pytest.mark.parametrize(
    "text", ["dataset;model_name\n", "dataset;model_name\n;\n", "dataset;model_name\n# cards;tiny\n"]
)
def test_a_header_alone(bench: Bench, text: str) -> None:
    fault = bench.fault(text)
    assert (fault.line, fault.message) == (1, "there is no row below the header.")


def test_another_encoding(bench: Bench) -> None:
    (bench.root / "user_config.csv").write_bytes("dataset;model_name\nкарты;tiny\n".encode("cp1251"))
    with pytest.raises(ConfigError, match=r"line 2: the text is not UTF-8 .*Save it as UTF-8"):
        read_plan_config(bench.root / "user_config.csv", bench.registry)


def test_records_of_another_width_and_bad_cells_together(bench: Bench) -> None:
    faults = bench.faults("dataset;model_name;seed\ncards;tiny\ncards;tiny;x\ncards;tiny;1;2\n")
    assert [(fault.row, fault.line, fault.column) for fault in faults] == [(1, 2, None), (2, 3, "seed"), (3, 4, None)]


def test_rows_before_an_unclosed_quote_are_checked_too(bench: Bench) -> None:
    faults = bench.faults('dataset;model_name;seed\ncards;tiny;x\ncards;tiny;"1\n')
    assert [(fault.row, fault.line) for fault in faults] == [(1, 2), (2, 3)]


# --- columns


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("metric", "metrics"),
        ("temprature", "temperature"),
        ("max_token", "max_tokens"),
        ("promt_collection", "prompt_collection"),
        ("filter_class", "filter_doc_class"),
        ("Max Tokens", "max_tokens"),
        ("frame_work", "framework"),
    ],
)
def test_a_misspelt_column(bench: Bench, written: str, meant: str) -> None:
    fault = bench.fault(f"dataset;model_name;{written}\ncards;tiny;\n")
    assert place(fault) == ("user_config.csv", None, 1, written.casefold())
    assert fault.hint == f"Did you mean {meant}?"


def test_missing_columns(bench: Bench) -> None:
    faults = bench.faults("task;backend\nVQA;hf\n")
    assert {fault.column for fault in faults if fault.row is None} == {"dataset", "model_name"}


@pytest.mark.parametrize("delimiter", ["|", " ", ":"])
def test_a_wrong_delimiter_is_one_fault(bench: Bench, delimiter: str) -> None:
    fault = bench.fault(bench.row(metrics="CER").replace(";", delimiter))
    assert (fault.line, fault.row) == (1, None)
    assert "Cells are separated by ; or , or a tab" in fault.message


def test_a_data_folder_that_is_not_there(bench: Bench) -> None:
    fault = bench.fault(bench.row(), data=bench.root / "nope")
    assert (fault.file, "no data folder" in fault.message, "nope" in fault.message) == ("command line", True, True)


def test_control_characters_do_not_reach_the_terminal(bench: Bench) -> None:
    bench.write("user_config.csv", "dataset;model_name;metrics\ncards;tiny;\x1b[31mCER\x07\x9b2J\n")
    said = CliRunner().invoke(app, ["run", str(bench.root / "user_config.csv")]).output
    assert not set(said) & set("\x1b\x07\x9b")


def test_a_misspelt_needed_column_is_one_fault_of_the_header(bench: Bench) -> None:
    faults = bench.faults("datasets;model_name\ncards;tiny\n")
    assert [place(fault)[2:] for fault in faults] == [(1, "datasets")]


def test_a_column_twice(bench: Bench) -> None:
    assert bench.fault("dataset;model_name;dataset\ncards;tiny;cards\n").column == "dataset"


def test_columns_of_the_other_file(bench: Bench) -> None:
    fault = bench.fault(bench.row(model_path="x"))
    assert (fault.column, fault.message) == ("model_path", "the column model_path belongs into vlm_base.csv.")
    fault = bench.fault(bench.row(), "model_name;model_path;temperature\ntiny;tiny;0\n")
    assert place(fault) == ("vlm_base.csv", None, 1, "temperature")


# --- cells


@pytest.mark.parametrize(
    ("column", "value", "mentions"),
    [
        ("metrics", "['CER', 'CERR']", ["CERR", "Did you mean CER?"]),
        ("metrics", "accuracy", ["no metric 'accuracy'", "Known: CER, WER", "Relaxed accuracy"]),
        ("metrics", "['CER', 'WER'", ["not closed", "['CER', 'WER'"]),
        ("metrics", "accuracy_of_fields", ["accuracy_of_fields", "Known: CER, WER"]),
        ("metrics_aggregators", "['general', 'by_doc']", ["by_doc", "by_doc_type"]),
        ("metrics_aggregators", "general]", ["no opening bracket"]),
        ("only_evaluate_metrics", "maybe", ["maybe", "True or False"]),
        ("normalize", "nfc,white", ["white", "whitespace"]),
        ("max_tokens", "many", ["many", "digits"]),
        ("max_tokens", "0", ["at least 1", "0"]),
        ("max_tokens", "99999999999999999999999", ["is too large", "18 digits"]),
        ("temperature", "1e400", ["'1e400' is too large"]),
        ("temperature", "inf", ["'inf' is not a number"]),
        ("temperature", "-1", ["0 or more"]),
        ("temperature", "hot", ["hot"]),
        ("top_p", "1.5", ["at most 1"]),
        ("top_k", "-1", ["0 (off) or more"]),
        ("repetition_penalty", "0", ["above 0"]),
        ("seed", "-1", ["between 0"]),
        ("stop", "['a'", ["not closed"]),
        ("stop", "['']", ["must not be empty"]),
        ("dtype", "float23", ["float23", "Did you mean float32?"]),
        ("model_impl", "vllm", ["auto, native, transformers"]),
        ("max_model_len", "0", ["less than 1"]),
        ("min_pixels", "28x28", ["28x28"]),
        ("max_pixels", "-1", ["-1"]),
        ("trust_remote_code", "sure", ["sure"]),
        ("sampling_defaults", "models", ["Did you mean model?"]),
        ("model_options", "{'batch_size': 8}", ["double quotes"]),
        ("model_options", "batch_size", ["batch_size=8"]),
        ("model_options", "batch_sise=8", ["batch_sise", "Did you mean batch_size?"]),
        ("model_options", "batch_size=many", ["batch_size", "many"]),
        ("model_options", '{"batch_size": "8"}', ["must be of type int"]),
        ("model_options", "attn_implementation=flash", ["one of sdpa, eager"]),
        ("model_options", "batch_size=-1", ["batch_size must be at least 1, not -1"]),
        ("model_options", "share=1.5", ["share must be at most 1, not 1.5"]),
        ("model_options", '{"share": NaN}', ["share must be at least 0, not nan"]),
        ("device", "cuda:7", ["hf cannot use the device 'cuda:7' here", "found: cpu", "or auto"]),
        ("device", "gpu", ["'gpu'", "found: cpu"]),
        ("model_options", "dtype=float32", ["dtype has a column of its own"]),
    ],
)
def test_a_cell_that_is_wrong(bench: Bench, column: str, value: str, mentions: list[str]) -> None:
    config = bench.rows({column: ""}, {column: value})
    fault = bench.fault(config)
    assert place(fault) == ("user_config.csv", 2, 3, column)
    assert fault.value == value
    assert all(text in whole(fault) for text in mentions), whole(fault)


def test_every_unknown_name_of_a_list_is_a_fault(bench: Bench) -> None:
    faults = bench.faults(bench.row(metrics="CERR, WER, WERR"))
    assert ["CERR" in faults[0].message, "WERR" in faults[1].message, len(faults)] == [True, True, 2]


@pytest.mark.parametrize(
    ("devices", "allowed", "refused"),
    [
        (("cuda:0", "cuda:1", "cpu"), ["auto", "cpu", "cuda", "cuda:1"], ["cuda:2", "mps"]),
        (("cuda", "cpu"), ["cuda", "cuda:3"], ["mps", "xpu:0"]),
        ((), ["cuda:7", "anything"], []),
    ],
)
def test_devices_are_held_to_what_the_backend_found(
    bench: Bench, devices: tuple[str, ...], allowed: list[str], refused: list[str]
) -> None:
    bench.registry.backends["hf"] = backend("hf", devices=devices)
    assert len(bench.plan(bench.rows(*({"device": name} for name in allowed))).jobs) == len(allowed)
    for name in refused:
        fault = bench.fault(bench.row(device=name))
        assert (fault.column, repr(name) in fault.message) == ("device", True)
        assert bench.fault(bench.row(), model={"device": name}).file == "command line"


def test_options_out_of_range_and_absent_devices_are_found_at_once_in_both_files(bench: Bench) -> None:
    base = "model_name;model_path;device;model_options\ntiny;tiny;cuda:7;batch_size=0\n"
    assert [(Path(str(f.file)).name, f.row, f.column) for f in bench.faults(bench.row(), base)] == [
        ("vlm_base.csv", 1, "model_options"),
        ("vlm_base.csv", 1, "device"),
    ]
    assert bench.plan(bench.row(device="cpu", model_options="batch_size=none"), base).jobs, "the row goes first"


def test_pixel_limits_that_cross(bench: Bench) -> None:
    fault = bench.fault(bench.row(min_pixels="200", max_pixels="100"))
    assert (fault.column, "above max_pixels (100)" in fault.message) == ("min_pixels", True)


@pytest.mark.parametrize("column", ["dataset", "model_name"])
def test_needed_cells_may_not_be_empty(bench: Bench, column: str) -> None:
    fault = bench.fault(bench.row(**{column: "", "seed": "1"}))
    assert (fault.row, fault.column, fault.message) == (1, column, "this cell must not be empty.")


# --- backends


@pytest.mark.parametrize(
    ("written", "mentions"),
    [
        ("vlm", ["'vlm'", "Did you mean vllm?", "plugins/vlmhb-vllm (here)", "Installed: hf."]),
        ("hff", ["Did you mean hf? Installed: hf."]),
        ("vLLM", ["the backend vllm is not installed", "plugins/vlmhb-vllm (here)"]),
        ("SGLang", ["vlmhb env create sglang", "plugins/vlmhb-sglang (here)"]),
        ("tensorrt", ["no backend 'tensorrt'", "Installed: hf."]),
    ],
)
@pytest.mark.parametrize("column", ["backend", "framework"])
def test_a_backend_that_is_not_there(bench: Bench, column: str, written: str, mentions: list[str]) -> None:
    fault = bench.fault(bench.row(**{column: written}))
    assert place(fault) == ("user_config.csv", 1, 2, column)
    assert all(text in whole(fault) for text in mentions), whole(fault)


def test_a_backend_that_is_broken(bench: Bench) -> None:
    bench.registry.backends["engine_missing"] = backend("engine_missing", problem="No module named 'a_package'.")
    fault = bench.fault(bench.row(backend="engine_missing"))
    assert fault.message == "the backend engine_missing cannot be used here: No module named 'a_package'."


def test_two_columns_that_disagree(bench: Bench) -> None:
    bench.registry.backends["vllm"] = backend("vllm")
    fault = bench.fault(bench.row(backend="hf", framework="vLLM"))
    assert fault.column == "framework"
    assert "'hf'" in fault.message
    assert "'vLLM'" in fault.message


def test_no_backend_named_and_several_or_none_there(bench: Bench) -> None:
    bench.registry.backends["vllm"] = backend("vllm")
    fault = bench.fault(bench.row())
    assert (fault.column, fault.hint) == ("backend", "Write one of hf, vllm.")
    bench.registry.backends = {"hf": backend("hf", problem="torch is missing")}
    fault = bench.fault(bench.row())
    assert f"pip install {ROOT / 'plugins' / 'vlmhb-hf'} (here)" in whole(fault)


def test_no_backend_named_and_vlm_base_has_several(bench: Bench) -> None:
    base = "framework;model_name;model_path\nvLLM;M;tiny\nHugging Face;M;tiny\n"
    fault = bench.fault(bench.row(model_name="M"), base)
    assert (fault.column, fault.hint) == ("backend", "Write one of vllm, hf.")


def test_a_wrong_backend_of_the_command_line_is_said_once(bench: Bench) -> None:
    fault = bench.fault(bench.rows({"backend": "hf"}, {"backend": "hf"}), backend="vlm")
    assert (fault.file, fault.row, fault.value) == ("command line", None, "vlm")


@pytest.mark.parametrize(
    ("overrides", "mentions"),
    [
        ({"sampling": {"temperature": -1.0}}, "temperature"),
        ({"sampling": {"temprature": 1.0}}, "temperature"),
        ({"model": {"dtype": "float8"}}, "float8"),
        ({"model": {"dtipe": "auto"}}, "dtipe"),
        ({"options": {"batch_sise": 1}}, "batch_size"),
        ({"options": {"batch_size": "x"}}, "int"),
    ],
)
def test_other_faults_of_the_command_line_are_said_once(
    bench: Bench, overrides: dict[str, object], mentions: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        bench.plan(bench.rows({"seed": "1"}, {"seed": "2"}), **overrides)
    (fault,) = caught.value.faults
    assert fault.row is None
    assert mentions in whole(fault)


# --- datasets, models, prompts


def test_a_dataset_that_is_not_there(bench: Bench) -> None:
    fault = bench.fault(bench.row(dataset="card", task="VQA"))
    assert place(fault) == ("user_config.csv", 1, 2, "dataset")
    assert fault.message == "there is no dataset 'card'."
    assert "Did you mean cards?" in whole(fault)
    assert str(bench.root / "Datasets/VQA/card") in whole(fault)


def test_a_folder_that_is_no_dataset(bench: Bench) -> None:
    fault = bench.fault(bench.row(dataset="tiny"))
    assert str(bench.root / "tiny") in fault.message
    assert "vlmhyperbench" in fault.message


def test_a_dataset_without_a_needed_column(bench: Bench) -> None:
    bench.dataset("bad", header="data_index;image_path;answer")
    fault = bench.fault(bench.row(dataset="bad"))
    assert fault.column == "dataset"
    assert "lacks the column question" in fault.message


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b"])
def test_names_that_no_file_can_have(bench: Bench, name: str) -> None:
    faults = bench.faults(bench.row(dataset=name, model_name=name, prompt_collection=name))
    assert [fault.column for fault in faults] == ["dataset", "model_name", "prompt_collection"]


def test_a_model_that_is_not_found_says_which_column_to_fill(bench: Bench) -> None:
    fault = bench.fault(bench.row(model_name="Qwen2-VL-2B"))
    assert place(fault) == ("user_config.csv", 1, 2, "model_name")
    assert f"Add a row for it to {bench.root / 'vlm_base.csv'} and fill its column model_path" in whole(fault)
    assert str(bench.root / "Models") in whole(fault)
    base = "framework;model_name\nvLLM;other\nHugging Face;Qwen2-VL-2B\n"
    assert "Fill the column model_path in row 2 of" in whole(bench.fault(bench.row(model_name="Qwen2-VL-2B"), base))


def test_a_model_of_nearly_the_same_name_is_named(bench: Bench) -> None:
    bench.model("Models/Qwen2-VL-2B-Instruct")
    fault = bench.fault(bench.row(model_name="Qwen2-VL-2B-Instrct"))
    assert "Did you mean Qwen2-VL-2B-Instruct?" in whole(fault)


@pytest.mark.parametrize("path", ["gone", "Models/gone", "/no/such/folder", "..\\gone"])
def test_a_model_path_that_is_not_there_is_a_fault_of_vlm_base(bench: Bench, path: str) -> None:
    bench.model("Models/m")
    fault = bench.fault(bench.rows({"model_name": "M"}, {"model_name": "M"}), f"model_name;model_path\nM;{path}\n")
    assert place(fault) == ("vlm_base.csv", 1, 2, "model_path")
    assert fault.value == path


def test_faults_of_vlm_base_and_of_the_config_together(bench: Bench) -> None:
    base = (
        "model_name;backend;model_path;dtype;model_options\n;hf;tiny;;\nM;hf;tiny;float23;\nN;hf;tiny;;{x\nM;hf;x;;\n"
    )
    faults = bench.faults(bench.row(seed="x"), base)
    assert [place(fault) for fault in faults] == [
        ("user_config.csv", 1, 2, "seed"),
        ("vlm_base.csv", 1, 2, "model_name"),
        ("vlm_base.csv", 2, 3, "dtype"),
        ("vlm_base.csv", 3, 4, "model_options"),
        ("vlm_base.csv", 4, 5, "model_name"),
    ]


def test_two_rows_of_vlm_base_may_say_the_same(bench: Bench) -> None:
    base = "model_name;backend;model_path;docker_image\nM;hf;tiny;a\nM;Hugging Face;tiny;b\n"
    assert len(bench.plan(bench.row(model_name="M"), base).jobs) == 1


def test_an_option_of_vlm_base_is_a_fault_of_vlm_base(bench: Bench) -> None:
    fault = bench.fault(bench.row(model_name="M"), "model_name;model_path;model_options\nM;tiny;batch_size=x\n")
    assert place(fault) == ("vlm_base.csv", 1, 2, "model_options")


def test_a_vlm_base_of_the_command_line_that_is_not_there(bench: Bench) -> None:
    with pytest.raises(ConfigError, match=r"gone\.csv: the file cannot be read"):
        bench.plan(bench.row(), models=bench.root / "gone.csv")


@pytest.mark.parametrize("column", ["prompt_collection", "system_prompt"])
def test_a_prompt_file_that_is_not_there(bench: Bench, column: str) -> None:
    fault = bench.fault(bench.row(task="VQA", **{column: "gone.txt"}))
    assert (fault.row, fault.column, fault.value) == (1, column, "gone.txt")
    folder = "PromptCollections" if column == "prompt_collection" else "SystemPrompts"
    assert str(bench.root / folder / "VQA" / "gone.txt") in whole(fault)


def test_faults_inside_a_prompt_collection_come_with_the_others(bench: Bench) -> None:
    bench.write("p.csv", "prompt;doc_class_question_type;cer\nAsk;card name;low\n")
    faults = bench.faults(
        bench.rows({"prompt_collection": "p.csv", "seed": "x"}, {"prompt_collection": "p.csv", "seed": ""})
    )
    assert [place(fault) for fault in faults] == [("user_config.csv", 1, 2, "seed"), ("p.csv", 1, 2, "cer")]


def test_sampling_defaults_of_a_model_that_is_no_folder(bench: Bench) -> None:
    fault = bench.fault(bench.row(model_name="org/name", sampling_defaults="model"))
    assert (fault.column, "model_path" in whole(fault)) == ("sampling_defaults", True)


@pytest.mark.parametrize("text", ["{", "[]", '{"do_sample": true, "temperature": -1}'])
def test_sampling_defaults_that_cannot_be_used(bench: Bench, text: str) -> None:
    bench.write("tiny/generation_config.json", text)
    fault = bench.fault(bench.row(sampling_defaults="model"))
    assert (fault.row, fault.column) == (1, "sampling_defaults")


# --- filters


@pytest.mark.parametrize(
    ("column", "value", "mentions"),
    [
        ("filter_doc_class", "cart", ["'cart'", "Did you mean card?"]),
        ("filter_question_type", "qqq", ["It has name, number, sum total."]),
        ("filter_doc_class", "['card'", ["not closed"]),
        ("filter_doc_class", "card; nothing", ["'nothing'"]),
        ("filter_question_type", "Name", ["Did you mean name?"]),
    ],
)
def test_a_filter_for_what_is_not_there(bench: Bench, column: str, value: str, mentions: list[str]) -> None:
    fault = bench.fault(bench.row(**{column: value}))
    assert (fault.row, fault.column, fault.value) == (1, column, value)
    assert all(text in whole(fault) for text in mentions), whole(fault)


def test_filters_that_leave_no_row(bench: Bench) -> None:
    fault = bench.fault(bench.row(filter_doc_class="bill", filter_question_type="name"))
    assert (fault.column, "no row of cards" in fault.message) == ("filter_question_type", True)


def test_a_dataset_that_cannot_be_read_to_its_end_for_a_filter(bench: Bench) -> None:
    bench.dataset("half", "1;t;a;Q;A;c;q;", '2;t;a;Q;"A;c;q;')
    fault = bench.fault(bench.row(dataset="half", filter_doc_class="c"))
    assert fault.column == "dataset"
    assert "row 2 (line 3)" in fault.message


# --- together


def test_everything_at_once_in_the_order_of_the_rows(bench: Bench) -> None:
    config = bench.rows(
        {"dataset": "gone", "backend": "vlm", "metrics": "CERR", "seed": "x"},
        {"dataset": "cards", "backend": "hf", "metrics": "CER", "seed": "1"},
        {"dataset": "cards", "backend": "hf", "metrics": "['CER'", "seed": "-1"},
    )
    faults = bench.faults(config)
    assert [(fault.row, fault.column) for fault in faults] == [
        (1, "dataset"),
        (1, "backend"),
        (1, "seed"),
        (1, "metrics"),
        (3, "seed"),
        (3, "metrics"),
    ]
