"""The parts of ``vlmhb doctor --probe`` that need no engine: questions, verdicts, shrinking, the page."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.envs import ROOT
from vlmhb import GenerationResult, ModelSpec, TokenLogprob
from vlmhb.compare.engines import EngineAnswers
from vlmhb.doctor.cells import Cell, cell_of
from vlmhb.doctor.families import rows
from vlmhb.doctor.matrix import Matrix, Measured, read_cells
from vlmhb.doctor.page import page
from vlmhb.doctor.probe import TwinWorker
from vlmhb.doctor.questions import COUNT, picture, questions
from vlmhb.engines import Engines
from vlmhb.errors import ConfigError, ModelLoadError, RequestError, WorkerStartError
from vlmhb.worker.launch import Launch

# --- questions


@pytest.mark.parametrize(
    ("counts", "pictures"),
    [((0,), [0] * 8), ((0, 1, 2), [0, 0, 1, 1, 1, 1, 2, 2]), ((0, 1), [0] * 4 + [1] * 4), ((1, 2), [1] * 4 + [2] * 4)],
)
def test_eight_questions_of_the_kinds_that_a_model_takes(counts: tuple[int, ...], pictures: list[int]) -> None:
    asked = questions(counts)
    assert len(asked) == COUNT
    assert [len(request.images) for request in asked] == pictures
    assert len({request.id for request in asked}) == COUNT
    assert len({(request.text, request.images) for request in asked}) == COUNT
    assert all(request.sampling.greedy for request in asked)


def test_only_pictures_that_a_model_takes_are_asked() -> None:
    assert {len(request.images) for request in questions((1,))} == {1}


def test_pictures_are_the_same_each_time_and_different_from_each_other() -> None:
    assert picture(60, 40, 1).data == picture(60, 40, 1).data
    assert picture(60, 40, 1).data != picture(60, 40, 2).data


# --- what becomes of a twin on an implementation


def result(id: str, *ids: int, prompt: int = 5, gap: float = 1.0) -> GenerationResult:
    """An answer; the second best candidate at each place is one more than the id, worse by ``gap``."""
    candidates = tuple((TokenLogprob(token, -0.5), TokenLogprob(token + 1, -0.5 - gap)) for token in ids)
    return GenerationResult(
        id=id, text="", token_ids=ids, finish_reason="length", prompt_tokens=prompt, logprobs=candidates,
        prompt_token_ids=tuple(range(prompt)),
    )  # fmt: skip


def answers(*results: GenerationResult, **fields: Any) -> EngineAnswers:
    return EngineAnswers("e", {entry.id: entry for entry in results}, **fields)


def judged(*results: GenerationResult, against: tuple[GenerationResult, ...]) -> Cell:
    return cell_of("vllm", "native", answers(*results), answers(*against))


def refusal(id: str, kind: Any = "unsupported") -> GenerationResult:
    return GenerationResult.failed(id, RequestError("at most 1 image", kind=kind))


def test_an_environment_that_is_of_no_use_says_nothing_about_a_twin(tmp_path: Path) -> None:
    class Broken(Engines):
        def launch(self, name: str, say: Callable[[str], None] | None = None) -> Launch:
            return Launch(python=str(tmp_path / "no-python"))

    with TwinWorker(Broken(), "vllm", tmp_path, print) as worker, pytest.raises(WorkerStartError, match="no-python"):
        worker.ask(ModelSpec(model_path="twin"), questions((0,)))


def test_the_same_tokens() -> None:
    cell = judged(result("a", 1, 2), against=(result("a", 1, 2),))
    assert (cell.outcome, cell.agrees, cell.words(), cell.requests, cell.unlike) == (
        "same tokens",
        True,
        cell.outcome,
        (1, 1),
        "",
    )
    assert cell.name == "vllm native"


def test_a_near_tie_says_where_and_how_near() -> None:
    cell = judged(result("a", 1, 3), against=(result("a", 1, 2, gap=0.004),))
    assert cell.words() == "near tie: at token 1, gap 0.0040"
    assert cell.agrees


def test_a_difference_is_shown_by_the_shortest_request() -> None:
    reference = (result("long", 1, 2, prompt=9), result("short", 7, 8, prompt=4), result("fine", 1))
    cell = judged(result("long", 3, 2, prompt=9), result("short", 7, 9, prompt=4), result("fine", 1), against=reference)
    assert (cell.outcome, cell.unlike, cell.requests) == ("differs", "short", (2, 3))
    assert cell.words() == "differs: at token 1, gap 1.0000 (2 of 3 requests)"
    assert not cell.agrees


def test_other_prompt_ids_are_a_difference() -> None:
    cell = judged(result("a", 1, prompt=6), against=(result("a", 1, prompt=5),))
    assert (cell.outcome, cell.reason) == ("differs", "the prompt has other token ids")


def test_refusing_and_failing_are_told_apart() -> None:
    reference = (result("a", 1), result("b", 1))
    assert (
        judged(result("a", 1), refusal("b"), against=reference).words() == "refused: at most 1 image (1 of 2 requests)"
    )
    assert judged(result("a", 1), refusal("b", "engine"), against=reference).outcome == "fails"
    assert judged(result("a", 1), against=reference).words() == "fails: it gave no answer. (1 of 2 requests)"
    assert cell_of("vllm", "native", answers(problem="no class", loaded=False)).words() == "refused: no class"
    assert cell_of("vllm", "native", answers(problem="it died")).words() == "fails: it died"


def test_what_both_refuse_is_the_same() -> None:
    assert judged(refusal("a"), against=(refusal("a"),)).outcome == "same tokens"


def test_an_answer_that_the_reference_does_not_give_is_a_difference() -> None:
    assert judged(result("a", 1), against=(refusal("a"),)).outcome == "differs"


def test_the_references_own_cell() -> None:
    assert cell_of("hf", "transformers", answers(result("a", 1))).outcome == "same tokens"
    assert cell_of("hf", "transformers", answers(refusal("a"))).outcome == "refused"


# --- shrinking


@pytest.fixture(scope="module")
def shrinking() -> ModuleType:
    """The rules; their module imports nothing of an engine."""
    path = ROOT / "plugins" / "vlmhb-hf" / "src" / "vlmhb_hf" / "twins" / "shrink.py"
    spec = importlib.util.spec_from_file_location("twins_shrink", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["twins_shrink"] = module
    spec.loader.exec_module(module)
    return module


def small(shrinking: ModuleType, config: dict[str, Any]) -> dict[str, Any]:
    shrinking.shrink(config)
    return config


def test_a_language_model(shrinking: ModuleType) -> None:
    config = small(shrinking, {
        "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128, "hidden_act": "silu",
        "layer_types": ["full_attention"] * 32, "max_position_embeddings": 4096, "sliding_window": None,
    })  # fmt: skip
    assert config == {
        "vocab_size": 32000, "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 4,
        "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 32, "hidden_act": "silu",
        "layer_types": ["full_attention"] * 4, "max_position_embeddings": 4096, "sliding_window": None,
    }  # fmt: skip


@pytest.mark.parametrize(("heads", "small_heads"), [(32, 4), (8, 2), (2, 2), (1, 1)])
def test_grouped_heads_stay_grouped(shrinking: ModuleType, heads: int, small_heads: int) -> None:
    config = {"vocab_size": 1, "num_attention_heads": 32, "num_key_value_heads": heads}
    assert small(shrinking, config)["num_key_value_heads"] == small_heads


def test_all_kinds_of_layers_stay(shrinking: ModuleType) -> None:
    kinds = ["sliding_attention"] * 5 + ["full_attention"]
    config = small(
        shrinking, {"vocab_size": 1, "num_hidden_layers": 12, "layer_types": kinds * 2, "sliding_window": 512}
    )
    assert config["layer_types"] == ["sliding_attention", "full_attention"] * 2
    assert config["sliding_window"] == 64
    linear = ["linear_attention"] * 3 + ["full_attention"]
    config = small(shrinking, {"vocab_size": 1, "num_hidden_layers": 8, "layer_types": linear * 2})
    assert config["layer_types"] == linear


def test_experts(shrinking: ModuleType) -> None:
    config = small(
        shrinking, {"vocab_size": 1, "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768}
    )
    assert config == {"vocab_size": 1, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64}


@pytest.mark.parametrize("section", [[16, 24, 24], [24, 20, 20], [1, 1, 62]])
def test_sections_of_rotation_fill_half_a_head(shrinking: ModuleType, section: list[int]) -> None:
    config = small(shrinking, {"vocab_size": 1, "rope_parameters": {"rope_theta": 1e6, "mrope_section": list(section)}})
    assert sum(config["rope_parameters"]["mrope_section"]) == 16
    assert min(config["rope_parameters"]["mrope_section"]) >= 1
    part = {"partial_rotary_factor": 0.5, "mrope_section": list(section)}
    config = small(shrinking, {"vocab_size": 1, "rope_parameters": part})
    assert sum(config["rope_parameters"]["mrope_section"]) == 8


def test_a_vision_part_keeps_its_geometry_and_ends_as_wide_as_the_language_part(shrinking: ModuleType) -> None:
    config = small(shrinking, {
        "model_type": "qwen2_5_vl",
        "text_config": {"vocab_size": 9, "hidden_size": 3584, "num_hidden_layers": 28},
        "vision_config": {
            "model_type": "v", "depth": 32, "hidden_size": 1280, "num_heads": 16, "intermediate_size": 3420,
            "patch_size": 14,
            "spatial_merge_size": 2, "out_hidden_size": 3584, "fullatt_block_indexes": [7, 15, 23, 31],
        },
    })  # fmt: skip
    assert config["text_config"]["hidden_size"] == 128
    vision = config["vision_config"]
    assert (vision["depth"], vision["hidden_size"], vision["num_heads"], vision["intermediate_size"]) == (3, 64, 2, 128)
    assert (vision["patch_size"], vision["spatial_merge_size"], vision["out_hidden_size"]) == (14, 2, 128)
    assert vision["fullatt_block_indexes"] == [1]


def test_a_vision_part_with_two_widths(shrinking: ModuleType) -> None:
    vision = {"model_type": "v", "embed_dim": 1280, "hidden_size": 3584, "depth": 32, "num_heads": 16}
    config = small(shrinking, {"text_config": {"vocab_size": 9}, "vision_config": vision})
    assert config["vision_config"] == {
        "model_type": "v",
        "embed_dim": 64,
        "hidden_size": 128,
        "depth": 3,
        "num_heads": 2,
    }


# --- the matrix


def test_the_rows_cover_the_models_of_the_founding_documents() -> None:
    names = " ".join(row.name for row in rows())
    for name in (
        "Qwen2-VL",
        "LLaVA-1.5",
        "LLaVA-1.6",
        "Idefics",
        "MiniCPM-V",
        "GPT",
        "LLaMA",
        "BLOOM",
        "Falcon",
        "Mistral",
    ):
        assert name in names
    assert len({row.name for row in rows()}) == len(rows())
    with pytest.raises(ConfigError, match="Did you mean"):
        rows(("Qwen2VL",))


def measured(family: str, cell: Cell, version: str = "vllm 1", **fields: Any) -> Measured:
    return Measured(
        family=family, cell=cell, **{"version": version, "reference": "transformers 5", "date": "2026-12-02", **fields}
    )


def test_a_matrix_goes_on_where_it_was_stopped(tmp_path: Any) -> None:
    path = tmp_path / "cells.json"
    cell = Cell(backend="vllm", implementation="native", outcome="same tokens")
    Matrix(path).add(measured("LLaMA", cell))
    again = Matrix(path)
    assert again.has("LLaMA", "vllm native", "vllm 1", "transformers 5")
    assert not again.has("LLaMA", "vllm native", "vllm 2", "transformers 5")
    assert not again.has("LLaMA", "vllm native", "vllm 1", "transformers 6")
    assert not again.has("Mistral", "vllm native", "vllm 1", "transformers 5")
    path.write_text("{")
    with pytest.raises(ModelLoadError, match="does not hold the cells"):
        read_cells(path)


def test_the_page_has_a_row_a_family_and_explains_what_is_not_the_same() -> None:
    fine = Cell(backend="hf", implementation="transformers", outcome="same tokens", requests=(8, 8))
    tie = Cell(
        backend="vllm",
        implementation="native",
        outcome="near tie",
        reason="at token 3, gap 0.0010",
        requests=(1, 8),
        unlike="text, 1",
    )
    bad = Cell(backend="vllm", implementation="transformers", outcome="refused", reason="no | such <class>.")
    cells = [measured("Qwen3-VL", bad), measured("Qwen3-VL", fine, "transformers 5"), measured("LLaMA", tie)]
    lines = page(rows(("Qwen3-VL", "LLaMA")), cells).splitlines()
    assert "| family | class | hf transformers | vllm native | vllm transformers |" in lines
    assert "| Qwen3-VL | `Qwen3VLForConditionalGeneration` | answers | not measured | refused |" in lines
    row = next(line for line in lines if line.startswith("| LLaMA "))
    assert row.endswith("| not measured | near tie: at token 3, gap 0.0010 (1 of 8 requests) | not measured |")
    (told,) = [line for line in lines if line.startswith("- **Qwen3-VL")]
    assert "refused: no \\| such &lt;class>. It leaves out the features" in told
    (told,) = [line for line in lines if line.startswith("- **LLaMA")]
    assert "Smallest question that shows it: text, 1." in told
    assert "transformers 5, vllm 1" in "\n".join(lines)
