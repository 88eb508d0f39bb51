"""Train the reader from nothing: ``python -m training OUT``, in the folder that holds this package.

Stop it with Ctrl-C and start it again with the same ``OUT``: it goes on from its last checkpoint.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

PAGES, POLISH = 63_500, 12_000
"""About an hour and a quarter on one quiet core; no page is shown twice."""


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line; train, export, evaluate."""
    parser = argparse.ArgumentParser(prog="python -m training", description="Train vlmhb-reader from nothing.")
    parser.add_argument("out", type=Path, help="folder of checkpoints, of the log and of the finished model")
    parser.add_argument("--pages", type=int, default=PAGES, help="of the first stage [default: %(default)s]")
    parser.add_argument("--polish", type=int, default=POLISH, help="pages of the second stage [default: %(default)s]")
    parser.add_argument("--batch", type=int, default=24, help="pages a step [default: %(default)s]")
    parser.add_argument("--threads", type=int, default=1, help="of torch; beside them one process draws the pages")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--eager", action="store_true", help="do not compile: slower, but needs no C++ compiler")
    parser.add_argument("--skip-evaluation", action="store_true", help="stop when the model is exported")
    chosen = parser.parse_args(arguments)
    os.environ["OMP_NUM_THREADS"] = str(chosen.threads)  # before torch is imported

    from training.run import Plan, train

    plan = Plan(
        out=chosen.out,
        pages=chosen.pages,
        polish=chosen.polish,
        batch=chosen.batch,
        threads=chosen.threads,
        seed=chosen.seed,
        compiled=not chosen.eager,
    )
    folder = train(plan)
    print(f"the model is in {folder}")
    if not chosen.skip_evaluation:
        from training import card
        from training.evaluate import evaluate

        answers = evaluate(folder, chosen.out / "evaluation")
        print(f"its scores are in {card.write(folder, chosen.out / 'curve.jsonl', answers)}")


if __name__ == "__main__":
    main()
