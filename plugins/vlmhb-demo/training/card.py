"""The model card: what the reader is, how it was trained, what it scores and what it cannot do."""

from __future__ import annotations

import json
from pathlib import Path
from string import Template

from training import scores

ROWS = 16
"""Of the learning curve in the card, about."""
_TEXT = Template("""\
# vlmhb-reader

A Qwen2-VL of $parameters parameters ($megabytes MB in bfloat16) that reads the synthetic pages of vlmhb-demo, in
Russian and in English. It exists so that demos, tests and comparisons of engines mean something without a download. It
is an ordinary model folder (`Qwen2VLForConditionalGeneration`): transformers, vLLM and SGLang load it unchanged.

| | |
| --- | --- |
| vision tower | $depth blocks, width $width, patch 14, 2 x 2 patches merged into a token |
| language model | $layers layers, width $hidden, $heads heads, tied embeddings |
| tokenizer | byte-level BPE of $vocabulary tokens; every letter and digit of both languages is one token |
| licence | Apache-2.0 |

## What it is for, and what it cannot do

It answers the questions of `demo-documents`, asked in the words of `documents/questions.py`, about pages drawn by
`vlmhb_demo.documents`. It was trained on nothing else:

- no other layout, font or size of letters, no photographs, no handwriting, no page larger than about 300 x 300 pixels;
- no other questions: whatever is asked, it answers one of those that it knows;
- no knowledge, no arithmetic, no conversation, no language but the letters of Russian and English;
- it is never unsure: what it cannot read it makes up, letter by letter.

Never use it to read real documents.

## Data

$pages pages were drawn during training, each shown once, by the generator that drew the shipped ones, but filled with
words that were made up on the spot. A page with a value or a name of a shipped page was thrown away. About one in seven
was worn (turned, blurred, pale, in uneven light).

## Training

    cd plugins/vlmhb-demo
    python -m training OUT

$minutes minutes with one torch thread ($cpu_minutes of processor time) beside a process that draws the pages. First the
tower learns alone which letters stand in the cell of each image token; then all of it learns to answer, and two layers
of the language model are told at which image tokens to look. The parts below are of pages that training never shows,
each letter of an answer with the right ones before it given. On the last sixth the learning rate falls once more
from a third of its height, and fields that are slow to learn (prices, quantities, categories) are asked more often:

$curve

## Scores

On the shipped pages, through `vlmhb run` with the backend hf in float32; "exact" is the part of the answers that are
right to the letter, CER the mean of the answers' character error rates. A choice is a question with a few possible
answers. The training was not tuned to the worn pages.

$scores

`tests/engines/hf/test_reader.py` holds the reader to this table.
""")


def write(folder: Path, curve: Path, answers: Path) -> Path:
    """Write ``MODEL_CARD.md`` into a model folder.

    Args:
        folder: the exported model.
        curve: the log of its training.
        answers: ``answers.csv`` of its evaluation.
    """
    from safetensors import safe_open

    weights = folder / "model.safetensors"
    with safe_open(weights, "pt") as file:
        parameters = sum(file.get_tensor(name).numel() for name in file.keys())  # noqa: SIM118 - it is no mapping
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    vision = config["vision_config"]
    rows = [json.loads(line) for line in curve.read_text(encoding="utf-8").splitlines()]
    card = folder / "MODEL_CARD.md"
    text = _TEXT.substitute(
        parameters=f"{parameters / 1e6:.1f} million",
        megabytes=f"{weights.stat().st_size / 1e6:.1f}",
        depth=vision["depth"],
        width=vision["embed_dim"],
        layers=config["num_hidden_layers"],
        hidden=config["hidden_size"],
        heads=config["num_attention_heads"],
        vocabulary=config["vocab_size"],
        pages=f"{rows[-1]['pages']:,}",
        minutes=round(rows[-1]["minutes"]),
        cpu_minutes=round(rows[-1]["cpu_minutes"]),
        curve=_curve(rows),
        scores=scores.table(scores.read(answers)),
    )
    card.write_text(text, encoding="utf-8")
    return card


def _curve(rows: list[dict[str, float]]) -> str:
    step = max(1, len(rows) // ROWS)
    kept = [row for number, row in enumerate(rows, 1) if number % step == 0 or number == len(rows)]
    names = ("letters_right", "looks_right", "whole_right", "fields_right")
    lines = [
        "| minutes | pages | letters | looks | whole texts | fields |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in kept:
        cells = (f"{row['minutes']:.0f}", f"{row['pages']:,}", *(f"{row[name]:.3f}" for name in names))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
