"""Every column of the two config files, and how its cells are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vlmhb.config import cells
from vlmhb.config.sheet import Columns

Parser = Callable[[str], Any]

USER_CONFIG = "user_config.csv"
VLM_BASE = "vlm_base.csv"

SAMPLING: dict[str, Parser] = {
    "max_tokens": cells.parse_int,
    "temperature": cells.parse_float,
    "top_p": cells.parse_float,
    "top_k": cells.parse_int,
    "repetition_penalty": cells.parse_float,
    "seed": cells.parse_int,
    "stop": cells.parse_stop,
}
"""Fields of ``SamplingParams``; in user_config.csv only."""

MODEL: dict[str, Parser] = {
    "revision": cells.parse_text,
    "dtype": cells.one_of("auto", "float32", "bfloat16", "float16"),
    "device": cells.parse_text,
    "max_model_len": cells.parse_positive,
    "max_images": cells.parse_positive,
    "min_pixels": cells.parse_pixels,
    "max_pixels": cells.parse_pixels,
    "model_impl": cells.one_of("auto", "native", "transformers"),
    "trust_remote_code": cells.parse_bool,
}
"""Fields of ``ModelSpec``; in both files, user_config.csv first."""

OPTIONS = "model_options"
BACKEND = ("backend", "framework")
SAMPLING_DEFAULTS = "sampling_defaults"

_RUN = (
    "dataset",
    "task",
    *BACKEND,
    "model_name",
    "system_prompt",
    "prompt_collection",
    "metrics",
    "metrics_aggregators",
    "only_evaluate_metrics",
    "filter_doc_class",
    "filter_question_type",
    "normalize",
    SAMPLING_DEFAULTS,
)
_BASE = ("model_name", "model_family", *BACKEND, "model_path")
_OLDER = ("docker_image", "git_python_package", "python_package", "module", "class_name")

USER_CONFIG_COLUMNS = Columns(
    known=(*_RUN, *SAMPLING, *MODEL, OPTIONS),
    needed=("dataset", "model_name"),
    ignored=_OLDER,
    elsewhere=dict.fromkeys(("model_path", "model_family"), VLM_BASE),
)
VLM_BASE_COLUMNS = Columns(
    known=(*_BASE, *MODEL, OPTIONS),
    needed=("model_name",),
    ignored=_OLDER,
    elsewhere=dict.fromkeys([name for name in (*_RUN, *SAMPLING) if name not in _BASE], USER_CONFIG),
)
