"""Draw the demo's dataset anew: ``python -m vlmhb_demo.render OUT``."""

from __future__ import annotations

import argparse
from pathlib import Path

from vlmhb_demo.documents import dataset


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line and write the dataset."""
    parser = argparse.ArgumentParser(prog="python -m vlmhb_demo.render", description="Draw the demo's documents.")
    parser.add_argument("out", type=Path, help="folder of the dataset; made if it is not there")
    parser.add_argument("--seed", type=int, default=dataset.SEED, help="%(default)s gives the pages that are shipped")
    chosen = parser.parse_args(arguments)
    count = dataset.write(chosen.out, chosen.seed)
    print(f"{count} questions written to {chosen.out / 'annotation.csv'}")


if __name__ == "__main__":
    main()
