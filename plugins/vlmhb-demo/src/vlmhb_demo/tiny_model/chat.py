"""The chat template: Qwen2-VL's format of turns, images and videos."""

from __future__ import annotations

_LINES = (
    "{%- set seen = namespace(images=0, videos=0) -%}",
    "{%- for message in messages -%}",
    "{%- if loop.first and message['role'] != 'system' -%}",
    "{{- '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' -}}",
    "{%- endif -%}",
    "{{- '<|im_start|>' + message['role'] + '\\n' -}}",
    "{%- if message['content'] is string -%}",
    "{{- message['content'] -}}",
    "{%- else -%}",
    "{%- for content in message['content'] -%}",
    "{%- if content['type'] == 'image' or 'image' in content or 'image_url' in content -%}",
    "{%- set seen.images = seen.images + 1 -%}",
    "{%- if add_vision_id -%}{{- 'Picture ' ~ seen.images ~ ': ' -}}{%- endif -%}",
    "{{- '<|vision_start|><|image_pad|><|vision_end|>' -}}",
    "{%- elif content['type'] == 'video' or 'video' in content -%}",
    "{%- set seen.videos = seen.videos + 1 -%}",
    "{%- if add_vision_id -%}{{- 'Video ' ~ seen.videos ~ ': ' -}}{%- endif -%}",
    "{{- '<|vision_start|><|video_pad|><|vision_end|>' -}}",
    "{%- elif 'text' in content -%}",
    "{{- content['text'] -}}",
    "{%- endif -%}",
    "{%- endfor -%}",
    "{%- endif -%}",
    "{{- '<|im_end|>\\n' -}}",
    "{%- endfor -%}",
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}",
)

TEMPLATE = "\n".join(_LINES)
"""Jinja source. A chat without a system turn gets the usual one, as in the published checkpoints."""
