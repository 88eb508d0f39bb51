"""Cells of config files: what each kind accepts, and what it says about the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args, get_type_hints

import pytest
from vlmhb.config import cells
from vlmhb.config.cells import BareText, CellError
from vlmhb.config.columns import MODEL, SAMPLING
from vlmhb.config.names import canonical_backend, fold, nearest, suggestion
from vlmhb.contract.backend import EngineOption
from vlmhb.contract.model import ModelSpec
from vlmhb.contract.request import SamplingParams


def refusal(parser: Callable[[str], Any], text: str) -> CellError:
    with pytest.raises(CellError) as caught:
        parser(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "value"),
    [("True", True), ("false", False), ("YES", True), ("no", False), ("1", True), ("0", False), ("0.0", False)],
)
def test_booleans(text: str, value: bool) -> None:
    assert cells.parse_bool(text) is value


@pytest.mark.parametrize("text", ["2", "maybe", "truee", "да"])
def test_what_is_no_boolean(text: str) -> None:
    assert repr(text) in str(refusal(cells.parse_bool, text))


@pytest.mark.parametrize(
    ("text", "value"), [("256", 256), ("-1", -1), ("+7", 7), ("16.0", 16), ("16,00", 16), ("007", 7)]
)
def test_whole_numbers(text: str, value: int) -> None:
    assert cells.parse_int(text) == value


@pytest.mark.parametrize("text", ["1.5", "1e3", "1_000", "ten", "٣", "0x10", "1 000", "9" * 5000, "."])
def test_what_is_no_whole_number(text: str) -> None:
    error = refusal(cells.parse_int, text)
    assert repr(text) in str(error)
    assert "digits" in str(error.hint)


@pytest.mark.parametrize(("text", "value"), [("0.7", 0.7), ("0,7", 0.7), ("1", 1.0), ("1e-2", 0.01), (".5", 0.5)])
def test_numbers(text: str, value: float) -> None:
    assert cells.parse_float(text) == value


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity", "1_0", "1.2.3", "1,2,3", "low", "1e999"])
def test_what_is_no_number(text: str) -> None:
    assert repr(text) in str(refusal(cells.parse_float, text))


@pytest.mark.parametrize(("text", "value"), [("1003520", 1003520), ("1280*28*28", 1003520), ("4 * 28", 112)])
def test_pixels(text: str, value: int) -> None:
    assert cells.parse_pixels(text) == value


@pytest.mark.parametrize("text", ["0", "-5", "28*", "28x28", "28*0"])
def test_what_is_no_number_of_pixels(text: str) -> None:
    refusal(cells.parse_pixels, text)


def test_at_least_one() -> None:
    assert cells.parse_positive("1") == 1
    refusal(cells.parse_positive, "0")


def test_one_of_several_words() -> None:
    parse = cells.one_of("auto", "float32")
    assert parse("FLOAT32") == "float32"
    error = refusal(parse, "float23")
    assert "auto, float32" in str(error)
    assert error.hint == "Did you mean float32?"


@pytest.mark.parametrize(
    ("text", "stop"),
    [("###", ("###",)), (r'["\n", "END"]', ("\n", "END")), ("a, b", ("a, b",)), ("[x]", ("x",))],
)
def test_stop_texts(text: str, stop: tuple[str, ...]) -> None:
    assert cells.parse_stop(text) == stop


def test_a_list_that_is_not_closed_quotes_the_cell() -> None:
    error = refusal(cells.parse_names, "['CER', 'WER'")
    assert "['CER', 'WER'" in str(error)
    assert "['CER', 'WER']" in str(error.hint)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('{"batch_size": 8}', {"batch_size": 8}),
        ('{"a": null, "b": [1, {"c": true}]}', {"a": None, "b": [1, {"c": True}]}),
        ("{}", {}),
        ("batch_size=8,attn_implementation=sdpa", {"batch_size": "8", "attn_implementation": "sdpa"}),
        ("a = 1 ; b = two words", {"a": "1", "b": "two words"}),
        ("a='x, y';b=\"z;\"", {"a": "x, y", "b": "z;"}),
        ("a=", {"a": ""}),
        ("limit.images-max=2", {"limit.images-max": "2"}),
        ("url=http://h:1/v1?x=1", {"url": "http://h:1/v1?x=1"}),
    ],
)
def test_options(text: str, options: dict[str, Any]) -> None:
    assert cells.parse_options(text) == options


def test_only_unquoted_values_are_open_to_a_type() -> None:
    options = cells.parse_options("a=8,b='8'")
    assert [type(value) for value in options.values()] == [BareText, str]
    assert type(cells.parse_options('{"a": "8"}')["a"]) is str


@pytest.mark.parametrize(
    "text",
    [
        "{'batch_size': 8}",
        '{"a": 1',
        "batch_size",
        "a=1,,b=2",
        "=1",
        "a=1,a=2",
        '{"a": 1, "a": 2}',
        '{"a": 1} x',
        "a b=1",
    ],
)
def test_what_are_no_options(text: str) -> None:
    refusal(cells.parse_options, text)


def test_options_written_as_python_get_the_right_advice() -> None:
    assert "double quotes" in str(refusal(cells.parse_options, "{'batch_size': 8}").hint)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("int", "8", 8),
        ("int", "none", None),
        ("float", "0,9", 0.9),
        ("bool", "yes", True),
        ("str", "4", "4"),
        ("str", "null", None),
        ("json", '{"image":2}', {"image": 2}),
        ("json", "plain", "plain"),
    ],
)
def test_open_text_takes_the_type_of_the_option(kind: Any, text: str, value: Any) -> None:
    fitted = cells.fit_option(EngineOption(name="o", type=kind), BareText(text))
    assert fitted == value
    assert type(fitted) is type(value)


def test_text_that_is_nothing_of_the_options_type_names_the_option() -> None:
    with pytest.raises(CellError, match=r"option o: 'many' is not a whole number"):
        cells.fit_option(EngineOption(name="o", type="int"), BareText("many"))


def test_quoted_and_json_values_keep_their_type() -> None:
    assert cells.fit_option(EngineOption(name="o", type="int"), "8") == "8"
    assert type(cells.plain_value(BareText("8"))) is str


# --- names


@pytest.mark.parametrize(
    "written", ["Hugging Face", "HuggingFace", "hugging_face", "hf", "HF", "transformers", " Transformers "]
)
def test_every_name_of_the_hugging_face_engine(written: str) -> None:
    assert canonical_backend(written, ["hf", "vllm"]) == "hf"
    assert canonical_backend(written, []).casefold().strip() == "hf"


@pytest.mark.parametrize(
    ("written", "name"),
    [("vLLM", "vllm"), ("SGLang", "sglang"), ("MyEngine", "my-engine"), ("my_engine", "my-engine"), (" vlm ", "vlm")],
)
def test_other_engines_are_found_whatever_their_case(written: str, name: str) -> None:
    assert canonical_backend(written, ["hf", "vllm", "sglang", "my-engine"]) == name


@pytest.mark.parametrize(
    ("name", "near"), [("CERR", "CER"), ("vlm", "vllm"), ("exact-macth", "exact_match"), ("xyz", None)]
)
def test_the_nearest_name(name: str, near: str | None) -> None:
    assert nearest(name, ["CER", "WER", "vllm", "exact_match"]) == near


def test_a_suggestion_names_one_or_all() -> None:
    assert suggestion("werr", ["CER", "WER"]) == "Did you mean WER?"
    assert suggestion("xyz", ["CER", "WER"]) == "Known: CER, WER."
    assert suggestion("xyz", []) == "Known: none."


def test_what_does_not_count_in_names() -> None:
    assert fold(" Exact-Match ") == fold("exact_match") == "exactmatch"


# --- the columns cover the contract


def test_every_sampling_parameter_has_a_column() -> None:
    assert set(SAMPLING) == set(SamplingParams.__struct_fields__)


def test_every_field_of_a_model_spec_has_a_column() -> None:
    assert set(MODEL) | {"model_path", "options"} == set(ModelSpec.__struct_fields__)


@pytest.mark.parametrize("field", ["dtype", "model_impl"])
def test_the_words_of_a_column_are_those_of_the_contract(field: str) -> None:
    words = get_args(get_type_hints(ModelSpec)[field])
    assert [MODEL[field](word) for word in words] == list(words)
    assert all(word in str(refusal(MODEL[field], "?")) for word in words)
    assert str(refusal(MODEL[field], "?")).count(",") == len(words) - 1
