"""Model folders that engines load or refuse, for holding ``vlmhb doctor`` to what loading really does.

Each case changes a copy of a tiny twin; :data:`CASES` names them all.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import twins
from vlmhb import ModelCheck

Change = Callable[[Path], None]

OWN_CODE = """
from transformers import LlamaConfig, LlamaForCausalLM
{imports}

class OwnConfig(LlamaConfig):
    model_type = "own_llama"


class OwnForCausalLM(LlamaForCausalLM):
    config_class = OwnConfig
"""
AUTO_MAP = {"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.OwnForCausalLM"}


class Case(NamedTuple):
    """A changed twin, and what to load it with."""

    twin: str
    change: Change
    fields: dict[str, Any]


def as_it_is(folder: Path) -> None:
    """Change nothing."""


def config(**values: Any) -> Change:
    """Set entries of config.json; ``None`` takes one out."""

    def change(folder: Path) -> None:
        file = folder / "config.json"
        content = {**json.loads(file.read_text()), **values}
        file.write_text(json.dumps({name: value for name, value in content.items() if value is not None}))

    return change


def without(*names: str) -> Change:
    """Take files away."""

    def change(folder: Path) -> None:
        for name in names:
            (folder / name).unlink(missing_ok=True)

    return change


def no_template(folder: Path) -> None:
    """Leave no chat template."""
    for name in ("chat_template.json", "chat_template.jinja"):
        (folder / name).unlink(missing_ok=True)
    file = folder / "tokenizer_config.json"
    content = json.loads(file.read_text())
    content.pop("chat_template", None)
    file.write_text(json.dumps(content))


def own_code(imports: str = "", file: str = "own.py") -> Change:
    """Let the folder bring its own model class."""

    def change(folder: Path) -> None:
        config(model_type="own_llama", architectures=["OwnForCausalLM"], auto_map=AUTO_MAP)(folder)
        (folder / file).write_text(OWN_CODE.format(imports=imports))

    return change


def quantized(**entries: Any) -> Change:
    """Let the config say that the weights are quantized."""
    return config(quantization_config=entries)


def smolvlm_processor(folder: Path) -> None:
    """Let the processor be SmolVLM's, which takes videos too and needs the package num2words."""
    for name in ("processor_config.json", "tokenizer_config.json"):
        content = json.loads((folder / name).read_text())
        content |= {"processor_class": "SmolVLMProcessor"}
        if name == "processor_config.json":
            content["video_processor"] = {"video_processor_type": "SmolVLMVideoProcessor"}
        (folder / name).write_text(json.dumps(content))


def written(name: str, text: str) -> Change:
    """Replace a file."""

    def change(folder: Path) -> None:
        (folder / name).write_text(text)

    return change


def less_weights(lost: str) -> Change:
    """Take a tensor out of the weights."""

    def change(folder: Path) -> None:
        from safetensors.torch import load_file, save_file

        weights = load_file(folder / "model.safetensors")
        save_file({k: v for k, v in weights.items() if k != lost}, folder / "model.safetensors", {"format": "pt"})

    return change


def first_deepseek_ocr(folder: Path) -> None:
    """Own model code, and a processor that only this code uses, inside of its ``infer``; see its published folder."""
    for name in ("processor_config.json", "preprocessor_config.json", "processing_minicpmv.py"):
        (folder / name).unlink(missing_ok=True)
    config(model_type="deepseek_vl_v2", architectures=["DeepseekOCRForCausalLM"])(folder)
    (folder / "processor_config.json").write_text(json.dumps({"processor_class": "DeepseekVLV2Processor"}))


BITSANDBYTES = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": True, "version": "gemm"}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": False, "sym": True}
TRUST = {"trust_remote_code": True}

CASES: dict[str, Case] = {
    **{
        name: Case(name, as_it_is, {})
        for name in (
            *("llama", "mistral", "gpt2", "bloom", "falcon", "qwen2_vl", "qwen2_5_vl", "qwen3_vl"),
            *("llava", "idefics3", "gemma3", "smolvlm", "internvl", "minicpmv4_6", "florence2", "deepseek_ocr2"),
            *("Donut", "TrOCR"),
        )
    },
    "phi3_v, trusted": Case("phi3_v", as_it_is, TRUST),
    "phi3_v, not trusted": Case("phi3_v", as_it_is, {}),
    "minicpmv, trusted": Case("minicpmv", as_it_is, TRUST),
    "minicpmv, not trusted": Case("minicpmv", as_it_is, {}),
    "the first DeepSeek-OCR": Case("minicpmv", first_deepseek_ocr, TRUST),
    "unknown model type": Case("llama", config(model_type="zephyron", architectures=["ZephyronForCausalLM"]), {}),
    "no model type": Case("llama", config(model_type=None, architectures=None), {}),
    "encoder and decoder": Case("llama", config(model_type="t5", architectures=["T5ForConditionalGeneration"]), {}),
    "own code": Case("llama", own_code(), {}),
    "own code, trusted": Case("llama", own_code(), TRUST),
    "own code, without its package": Case("llama", own_code("import a_package_of_nobody"), TRUST),
    "own code, without its file": Case("llama", own_code(file="other.py"), TRUST),
    "an architecture that only own code has": Case(
        "llava",
        config(
            model_type="phi3_v",
            architectures=["Phi3VForCausalLM"],
            auto_map={"AutoConfig": "c.Phi3VConfig", "AutoModelForCausalLM": "m.Phi3VForCausalLM"},
        ),
        {},
    ),
    "awq": Case("llama", quantized(**AWQ), {}),
    "gptq": Case("llama", quantized(**GPTQ), {}),
    "bitsandbytes": Case("llama", quantized(**BITSANDBYTES), {}),
    "compressed tensors": Case("llama", quantized(quant_method="compressed-tensors", config_groups={}), {}),
    "quantized in a way nobody knows": Case("llama", quantized(quant_method="folded"), {}),
    "no processor": Case("llava", without("processor_config.json"), {}),
    "a processor that needs an absent package": Case("idefics3", smolvlm_processor, {}),
    "no tokenizer": Case("llama", without("tokenizer.json", "vocab.json", "merges.txt", "tokenizer_config.json"), {}),
    "a damaged tokenizer": Case("llama", written("tokenizer.json", "{"), {}),
    "no chat template": Case("llama", no_template, {}),
    "weights that lack a tensor": Case("llama", less_weights("model.layers.1.mlp.down_proj.weight"), {}),
    "weights of another size": Case("llama", config(intermediate_size=288), {}),
    "a head size of its own": Case("llama", config(head_dim=24), {}),
    "a window": Case("mistral", config(sliding_window=16), {}),
}


def make(name: str, twin_of: Callable[[str], Path], folder: Path) -> tuple[Path, dict[str, Any]]:
    """Make a case's folder; returns it with the fields of the spec."""
    case = CASES[name]
    shutil.copytree(twin_of(case.twin), folder)
    case.change(folder)
    return folder, case.fields


_ASK = """
import json, sys
import msgspec
from vlmhb import ModelSpec
from vlmhb.discovery.registry import Registry
backend, asked, out = sys.argv[1:]
registry = Registry()
found = {}
for name, (folder, fields) in json.load(open(asked)).items():
    found[name] = registry.check_model(backend, ModelSpec(model_path=folder, dtype="float32", **fields))
open(out, "wb").write(msgspec.json.encode(found))
"""


class Asked(NamedTuple):
    """A case, and what the plugin says about it."""

    folder: Path
    fields: dict[str, Any]
    check: ModelCheck


def ask(backend: str, names: Iterable[str], tiny: Path, home: Path) -> dict[str, Asked]:
    """Make cases and ask a backend about all of them, in one process of their own: asking may change this one."""
    made = {"qwen2_vl": tiny}

    def twin_of(family: str) -> Path:
        if family not in made:
            made[family] = twins.make(family, home / family)
        return made[family]

    cases = {name: make(name, twin_of, home / f"case{number}") for number, name in enumerate(names)}
    (home / "asked.json").write_text(json.dumps({name: (str(path), fields) for name, (path, fields) in cases.items()}))
    command = [sys.executable, "-c", _ASK, backend, str(home / "asked.json"), str(home / "out.json")]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    checks = msgspec.json.decode((home / "out.json").read_bytes(), type=dict[str, ModelCheck])
    return {name: Asked(*cases[name], checks[name]) for name in cases}
