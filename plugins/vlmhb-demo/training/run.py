"""The training loop: time, checkpoints, the log of the learning curve, the progress bar."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from training import export
from training.batches import Batch, Supply, batch
from training.learner import Learner, Losses, rate
from training.sizes import Sizes
from training.words import tokenizer

FIELDS = 4
"""Questions about fields, a page, beside the one about all of its text."""
CHECK_EVERY, SAVE_EVERY = 120.0, 120.0
"""Seconds between two rows of the log, and between two checkpoints."""


@dataclass(frozen=True)
class Plan:
    """What to do; see ``python -m training --help``."""

    out: Path
    seconds: float
    tower_seconds: float
    pages: int = 24
    threads: int = 1
    seed: str = "1"
    compiled: bool = True
    sizes: Sizes = field(default_factory=lambda: Sizes(tokenizer().size))


@dataclass
class Progress:
    """How far the training is; ``seconds`` are those of training only, over all runs."""

    step: int = 0
    pages: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0


def train(plan: Plan) -> Path:
    """Train, or go on training, until the time is over; return the folder of the exported model."""
    torch.set_num_threads(plan.threads)
    torch.manual_seed(int(plan.seed))
    plan.out.mkdir(parents=True, exist_ok=True)
    learner, progress = Learner(plan.sizes, plan.compiled), Progress()
    checkpoint = plan.out / "checkpoint.pt"
    if checkpoint.exists():
        kept = torch.load(checkpoint, weights_only=True)
        learner.load(kept["learner"])
        progress = Progress(**kept["progress"])
    if progress.seconds < plan.seconds:
        supply = Supply(plan.seed, plan.pages, FIELDS, first=progress.step)
        try:
            _loop(plan, learner, progress, supply, checkpoint)
        finally:
            supply.close()
    return export.write(plan.out / "vlmhb-reader", learner.reader)


def _loop(plan: Plan, learner: Learner, progress: Progress, supply: Supply, checkpoint: Path) -> None:
    checks = [batch(f"check/{number}", 24, FIELDS, worn_part=0.0) for number in range(3)]
    checked = saved = progress.seconds
    made = supply.next()  # the other process starts meanwhile; that is no training
    while progress.seconds < plan.seconds:
        start, cpu = time.monotonic(), time.process_time()
        losses = learner.step(
            made, progress.step, progress.seconds / plan.seconds, progress.seconds < plan.tower_seconds
        )
        made = supply.next()
        progress.step += 1
        progress.pages += plan.pages
        progress.seconds += time.monotonic() - start
        progress.cpu_seconds += time.process_time() - cpu
        _show(plan, progress, losses)
        if progress.seconds - checked >= CHECK_EVERY or progress.seconds >= plan.seconds:
            checked = progress.seconds
            _log(plan, learner, progress, losses, checks)
        if progress.seconds - saved >= SAVE_EVERY or progress.seconds >= plan.seconds:
            saved = progress.seconds
            _save(checkpoint, {"learner": learner.state(), "progress": vars(progress)})
    print(file=sys.stderr)


def _log(plan: Plan, learner: Learner, progress: Progress, losses: Losses, checks: list[Batch]) -> None:
    """Append a row to ``curve.jsonl``: what is right of pages that training never shows."""
    tower_only = progress.seconds < plan.tower_seconds
    with torch.no_grad():
        seen = [learner.losses(check, tower_only) for check in checks]
    mean = {name: sum(getattr(s, name) for s in seen) / len(seen) for name in ("letters", "whole", "fields")}
    row: dict[str, Any] = {
        "minutes": round(progress.seconds / 60, 2),
        "cpu_minutes": round(progress.cpu_seconds / 60, 2),
        "step": progress.step,
        "pages": progress.pages,
        "rate": rate(progress.step, progress.seconds / plan.seconds),
        "loss": round(losses.total.item(), 4),
        **{f"{name}_right": round(value, 4) for name, value in mean.items()},
    }
    with (plan.out / "curve.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def _show(plan: Plan, progress: Progress, losses: Losses) -> None:
    done = min(1.0, progress.seconds / plan.seconds)
    bar = "#" * int(30 * done) + "." * (30 - int(30 * done))
    line = f"\r[{bar}] {progress.seconds / 60:5.1f} min  {progress.pages} pages  loss {losses.total.item():.3f}  "
    right = f"letters {losses.letters:.3f}  text {losses.whole:.3f}  fields {losses.fields:.3f}"
    print(line + right, end="", file=sys.stderr, flush=True)


def _save(path: Path, state: dict[str, Any]) -> None:
    fresh = path.with_suffix(".new")
    torch.save(state, fresh)
    fresh.replace(path)
