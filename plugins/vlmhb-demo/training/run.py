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
from training.learner import Learner, Losses
from training.sizes import Sizes
from training.stages import Stage, stages
from training.words import tokenizer

FIELDS = 4
"""Questions about fields, a page, beside the one about all of its text."""
TOWER_RIGHT, TOWER_PART = 0.95, 0.15
"""The tower learns alone until it knows so many of the letters, or until this part of the first stage is over."""
CHECK_EVERY = 100
"""Steps between two rows of the log, each with a checkpoint."""


@dataclass(frozen=True)
class Plan:
    """What to do; see ``python -m training --help``."""

    out: Path
    pages: int
    polish: int
    batch: int = 24
    threads: int = 1
    seed: str = "1"
    compiled: bool = True
    sizes: Sizes = field(default_factory=lambda: Sizes(tokenizer().size))

    @property
    def checkpoint(self) -> Path:
        """The file that a training goes on from."""
        return self.out / "checkpoint.pt"


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


def train(plan: Plan) -> Path:
    """Train, or go on training, until all pages were shown; return the folder of the exported model."""
    torch.set_num_threads(plan.threads)
    torch.manual_seed(int(plan.seed))
    plan.out.mkdir(parents=True, exist_ok=True)
    learner, progress = Learner(plan.sizes, plan.compiled), Progress()
    if plan.checkpoint.exists():
        kept = torch.load(plan.checkpoint, weights_only=True)
        learner.load(kept["learner"])
        progress = Progress(**kept["progress"])
    before = 0
    for stage in stages(plan.pages, plan.polish):
        if progress.pages < before + stage.pages:
            supply = Supply(plan.seed, plan.batch, FIELDS, stage.often, first=progress.step)
            try:
                _loop(plan, stage, before, learner, progress, supply)
            finally:
                supply.close()
        before += stage.pages
    return export.write(plan.out / "vlmhb-reader", learner.reader)


def _loop(plan: Plan, stage: Stage, before: int, learner: Learner, progress: Progress, supply: Supply) -> None:
    """Go on until a stage's pages were shown; ``before`` is how many belong to those before it."""
    checks = [batch(f"check/{number}", plan.batch, FIELDS, worn_part=0.0) for number in range(3)]
    made = supply.next()  # the other process starts meanwhile; that is no training
    done = (progress.pages - before) / stage.pages
    while done < 1.0:
        start, cpu = time.monotonic(), time.process_time()
        rate = stage.rate_at(progress.step, done)
        losses = learner.step(made, rate, progress.tower)
        made = supply.next()
        progress.step += 1
        progress.pages += plan.batch
        done = (progress.pages - before) / stage.pages
        progress.letters += 0.05 * (losses.letters - progress.letters) if losses.letters else 0.0
        progress.tower &= progress.letters < TOWER_RIGHT and done < TOWER_PART
        progress.seconds += time.monotonic() - start
        progress.cpu_seconds += time.process_time() - cpu
        _show(plan, progress, losses)
        if progress.step % CHECK_EVERY == 0 or done >= 1.0:
            _log(plan, learner, progress, losses, rate, checks)
            _save(plan.checkpoint, {"learner": learner.state(), "progress": vars(progress)})
    print(file=sys.stderr)


def _log(plan: Plan, learner: Learner, progress: Progress, losses: Losses, rate: float, checks: list[Batch]) -> None:
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
        "rate": rate,
        "loss": round(losses.total.item(), 4),
        **{f"{name}_right": round(value, 4) for name, value in mean.items()},
    }
    with (plan.out / "curve.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def _show(plan: Plan, progress: Progress, losses: Losses) -> None:
    done = min(1.0, progress.pages / (plan.pages + plan.polish))
    bar = "#" * int(30 * done) + "." * (30 - int(30 * done))
    line = f"\r[{bar}] {progress.seconds / 60:5.1f} min  {progress.pages} pages  loss {losses.total.item():.3f}  "
    right = f"letters {losses.letters:.3f}  text {losses.whole:.3f}  fields {losses.fields:.3f}"
    print(line + right, end="", file=sys.stderr, flush=True)


def _save(path: Path, state: dict[str, Any]) -> None:
    fresh = path.with_suffix(".new")
    torch.save(state, fresh)
    fresh.replace(path)
