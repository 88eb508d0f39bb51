"""The working example that ``vlmhb init`` writes: two config files with every common column explained."""

from __future__ import annotations

from vlmhb.config.columns import USER_CONFIG, VLM_BASE

_USER_CONFIG = """\
# What to run: one row is one model on one dataset. Lines that begin with # are comments.
# Start it with: vlmhb run user_config.csv
#
# dataset                a dataset that a plugin ships (demo-documents), or a folder with annotation.csv and images/:
#                        relative to this file, or under Datasets/<task>/
# task                   names the folder under Datasets/ and PromptCollections/
# backend                the engine: hf, vllm, sglang; empty takes the only one installed
# model_name             a row of vlm_base.csv, a model that a plugin ships, a folder, or a hub id (organisation/name)
# system_prompt          a text, or a file under SystemPrompts/
# prompt_collection      a file under PromptCollections/<task>/ whose prompts replace the dataset's questions; a list
#                        of files compares them
# metrics                a list: CER, WER, exact_match, ...
# metrics_aggregators    a list of tables: general, by_id, by_doc_question, by_doc_type; empty makes all;
#                        by:split and the like make tables by any columns
# only_evaluate_metrics  True scores the stored answers again and generates nothing
# filter_doc_class, filter_question_type   values of the rows to take; empty takes all
# max_tokens, temperature, top_p, top_k, repetition_penalty, seed, stop   how answers are generated; greedy by default
# Further columns: normalize, sampling_defaults, and every column of vlm_base.csv from revision on.
dataset;task;backend;model_name;system_prompt;prompt_collection;metrics;metrics_aggregators;only_evaluate_metrics;\
filter_doc_class;filter_question_type;max_tokens;temperature
demo-documents;VQA;;vlmhb-reader;;;['CER', 'WER', 'exact_match'];['general', 'by_doc_type'];False;;;256;0
"""

_VLM_BASE = """\
# Where models are and how they are loaded: one row a model, or one for each model and backend.
# Lines that begin with # are comments.
#
# model_path      a folder (relative to this file) or a hub id such as Qwen/Qwen2-VL-2B-Instruct; empty looks for a
#                 model that a plugin ships, then for Models/<model_name>
# backend         the engine this row is for; empty holds for every engine
# model_options   options of the engine: batch_size=8 or {"batch_size": 8}; vlmhb backends lists them
# Further columns: revision, device, max_model_len, max_images, min_pixels, max_pixels, model_impl, trust_remote_code.
model_name;model_family;backend;model_path;dtype;model_options
vlmhb-reader;Qwen2-VL;;;float32;
"""


def example_files() -> dict[str, str]:
    """The example's files, name to text; written as UTF-8 they make a run that works with the demo package."""
    return {USER_CONFIG: _USER_CONFIG, VLM_BASE: _VLM_BASE}
