"""``python -m vlmhb.worker --socket N``: a worker; started by :mod:`vlmhb.worker.process`, not by hand."""

from __future__ import annotations

import argparse

if __name__ == "__main__":  # engines that spawn processes import this module again
    from vlmhb.worker.serve import serve

    parser = argparse.ArgumentParser(prog="python -m vlmhb.worker")
    parser.add_argument("--socket", type=int, required=True)
    serve(parser.parse_args().socket)
