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
TOWER_RIGHT, TOWER_PART = 0.95, 0.15
"""The tower learns alone until it knows so many of the letters, or until this part of all pages was shown."""
CHECK_EVERY = 100
"""Steps between two rows of the log, each with a checkpoint."""


@dataclass(frozen=True)
class Plan:
    """What to do; see ``python -m training --help``."""

    out: Path
    pages: int
    batch: int = 24
    threads: int = 1
    seed: str = "1"
    compiled: bool = True
    sizes: Sizes = field(default_factory=lambda: Sizes(tokenizer().size))


@dataclass
class Progress:
    """How far the training is.

    Attributes:
        tower: whether the tower still learns alone.
        letters: how many letters it knows: a running mean of what was right in the last steps.
        seconds, cpu_seconds: of training only, over all runs.
    """

    step: int = 0
    pages: int = 0
    tower: bool = True
    letters: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def done(self, plan: Plan) -> float:
        """The part of the pages that was shown."""
        return self.pages / plan.pages


def train(plan: Plan) -> Path:
    """Train, or go on training, until all pages were shown; return the folder of the exported model."""
    torch.set_num_threads(plan.threads)
    torch.manual_seed(int(plan.seed))
    plan.out.mkdir(parents=True, exist_ok=True)
    learner, progress = Learner(plan.sizes, plan.compiled), Progress()
    checkpoint = plan.out / "checkpoint.pt"
    if checkpoint.exists():
        kept = torch.load(checkpoint, weights_only=True)
        learner.load(kept["learner"])
        progress = Progress(**kept["progress"])
    if progress.pages < plan.pages:
        supply = Supply(plan.seed, plan.batch, FIELDS, first=progress.step)
        try:
            _loop(plan, learner, progress, supply, checkpoint)
        finally:
            supply.close()
    return export.write(plan.out / "vlmhb-reader", learner.reader)


def _loop(plan: Plan, learner: Learner, progress: Progress, supply: Supply, checkpoint: Path) -> None:
    checks = [batch(f"check/{number}", plan.batch, FIELDS, worn_part=0.0) for number in range(3)]
    made = supply.next()  # the other process starts meanwhile; that is no training
    while progress.pages < plan.pages:
        start, cpu = time.monotonic(), time.process_time()
        losses = learner.step(made, progress.step, progress.done(plan), progress.tower)
        made = supply.next()
        progress.step += 1
        progress.pages += plan.batch
        progress.letters += 0.05 * (losses.letters - progress.letters) if losses.letters else 0.0
        progress.tower &= progress.letters < TOWER_RIGHT and progress.done(plan) < TOWER_PART
        progress.seconds += time.monotonic() - start
        progress.cpu_seconds += time.process_time() - cpu
        _show(plan, progress, losses)
        if progress.step % CHECK_EVERY == 0 or progress.pages >= plan.pages:
            _log(plan, learner, progress, losses, checks)
            _save(checkpoint, {"learner": learner.state(), "progress": vars(progress)})
    print(file=sys.stderr)


def _log(plan: Plan, learner: Learner, progress: Progress, losses: Losses, checks: list[Batch]) -> None:
    """Append a row to ``curve.jsonl``: what is right of pages that training never shows."""
    with torch.no_grad():
        seen = [learner.losses(check, progress.tower) for check in checks]
    names = ("letters", "looks", "whole", "fields")
    mean = {name: sum(getattr(s, name) for s in seen) / len(seen) for name in names}
    row: dict[str, Any] = {
        "minutes": round(progress.seconds / 60, 2),
        "cpu_minutes": round(progress.cpu_seconds / 60, 2),
        "step": progress.step,
        "pages": progress.pages,
        "rate": rate(progress.step, progress.done(plan)),
        "loss": round(losses.total.item(), 4),
        **{f"{name}_right": round(value, 4) for name, value in mean.items()},
    }
    with (plan.out / "curve.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def _show(plan: Plan, progress: Progress, losses: Losses) -> None:
    done = min(1.0, progress.done(plan))
    bar = "#" * int(30 * done) + "." * (30 - int(30 * done))
    line = f"\r[{bar}] {progress.seconds / 60:5.1f} min  {progress.pages} pages  loss {losses.total.item():.3f}  "
    right = f"letters {losses.letters:.3f}  text {losses.whole:.3f}  fields {losses.fields:.3f}"
    print(line + right, end="", file=sys.stderr, flush=True)


def _save(path: Path, state: dict[str, Any]) -> None:
    fresh = path.with_suffix(".new")
    torch.save(state, fresh)
    fresh.replace(path)
