"""``vlmhb bench`` with a real engine in a real worker."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from vlmhb.bench.figures import figures_of
from vlmhb.bench.result import read_bench
from vlmhb.cli.app import app


@pytest.mark.slow
def test_a_real_model_is_measured(tmp_path: Path) -> None:
    drawn = ("--pages", "2", "--size", "224x224", "--questions", "2", "--max-tokens", "5")
    asked = ("bench", "tiny-qwen2-vl", "-b", "hf", *drawn, "--repeats", "2", "--concurrency", "1", "-o", "threads=1")
    done = CliRunner().invoke(app, [*asked, "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    bench = read_bench(tmp_path)
    (engine,) = bench.engines
    assert engine.memory is not None
    assert (engine.memory.host or 0) > 100 << 20, "torch alone takes more"
    assert engine.facts["threads"] == 1
    assert isinstance(engine.facts["hints"], list)
    assert [(str(one.arrivals), one.repeat) for one in engine.passes] == [
        ("all at once", 1),
        ("concurrency 1", 1),
        ("all at once", 2),
        ("concurrency 1", 2),
    ]
    for one in engine.passes:
        for timing in one.requests:
            assert timing.error is None
            assert timing.total_time is not None
            assert timing.time_to_first_token is not None
            assert 0 < timing.time_to_first_token <= timing.total_time <= timing.ended - timing.due + 0.001
            assert timing.output_tokens is not None
            assert 1 <= timing.output_tokens <= 5
    together, alone = figures_of(bench)
    assert together.time_to_first_token.p50 is not None
    assert together.requests_per_second is not None
    assert alone.requests_per_second is not None
    assert together.requests_per_second.value > alone.requests_per_second.value, "batches are faster"
    first = {timing.id: timing.output for timing in engine.passes[0].requests}
    assert len(first) == 4
