"""The parts of ``vlmhb bench`` that need no engine: arrivals, pages, workloads, figures, comparisons."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import vlmhb
from PIL import Image
from support.processes import wait_until
from support.runs import read_csv
from vlmhb import GenerationControl, GenerationRequest, GenerationResult
from vlmhb.bench.against import changes, differences
from vlmhb.bench.arrivals import Arrivals, Feed, sweep
from vlmhb.bench.engine import run_pass
from vlmhb.bench.figures import Figures, figures_of
from vlmhb.bench.memory import MemoryWatch, cpu_seconds
from vlmhb.bench.pages import draw_page, question
from vlmhb.bench.result import Bench, EngineRecord, Pass, Timing, read_bench
from vlmhb.bench.save import notes, save
from vlmhb.bench.tables import COLUMNS, aligned, csv_rows, engines_table, sweep_table, write_csv
from vlmhb.bench.workload import of_dataset, of_drawn_pages
from vlmhb.data.vlmhyperbench import VlmHyperBenchFormat
from vlmhb.errors import ConfigError
from vlmhb.run.folder import RunFolder

# --- arrivals


def ask(count: int) -> list[GenerationRequest]:
    return [GenerationRequest.ask(str(number), "?") for number in range(count)]


def test_so_many_in_flight_and_no_more() -> None:
    feed = Feed(ask(3), Arrivals("concurrency", 2))
    assert feed.ready()
    next(feed)
    assert feed.ready()
    next(feed)
    assert not feed.ready()
    feed.answered()
    assert feed.ready()
    assert next(feed).id == "2"
    assert feed.ready(), "the end is there to be read"
    assert list(feed) == []


def test_all_at_once_is_not_paced() -> None:
    feed = Feed(ask(2), Arrivals())
    assert not feed.paced
    assert [request.id for request in feed] == ["0", "1"]


def test_requests_of_a_rate_are_due_at_their_moments() -> None:
    arrivals = Arrivals("rate", 200.0)
    moments = arrivals.moments(40)
    assert moments is not None
    assert moments[0] == 0.0
    assert moments == sorted(moments)
    assert moments[-1] / 39 == pytest.approx(1 / 200, rel=0.5)
    assert arrivals.moments(40) == moments, "every engine gets the same ones"
    feed = Feed(ask(40), arrivals)
    time.sleep(0.02)  # the engine is late: what is due does not wait for it
    list(feed)
    assert list(feed.due.values()) == moments
    assert feed.now() >= moments[-1]


def test_everything_is_measured_all_at_once_too() -> None:
    assert list(map(str, sweep([1, 4], [0.5]))) == ["all at once", "concurrency 1", "concurrency 4", "rate 0.5"]


class Slow(vlmhb.ModelInterface):
    """Answers what it may read, one after another, and remembers how many it had at a time."""

    def __init__(self) -> None:
        self.most = 0

    def backend_info(self) -> Any:
        raise NotImplementedError

    def load_spec(self, spec: Any) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass

    def generate_requests(
        self, requests: Iterable[GenerationRequest], control: GenerationControl | None = None
    ) -> Iterator[GenerationResult]:
        assert control is not None
        source, held, ended = iter(requests), list[GenerationRequest](), False
        while not ended or held:
            while not ended and control.may_read(busy=bool(held)):
                request = next(source, None)
                ended = request is None
                held += [request] if request is not None else []
            self.most = max(self.most, len(held))
            if held:
                time.sleep(0.005)
                request = held.pop(0)
                yield GenerationResult(id=request.id, token_ids=(1, 2), finish_reason="stop", prompt_tokens=5)


@pytest.mark.parametrize(("arrivals", "most"), [(Arrivals("concurrency", 3), 3), (Arrivals(), 12)])
def test_a_pass_keeps_to_the_limit(arrivals: Arrivals, most: int) -> None:
    model = Slow()
    found = run_pass(model, ask(12), arrivals)
    assert model.most == most
    assert len(found.requests) == 12
    assert 12 * 0.005 <= found.seconds == max(timing.ended for timing in found.requests)
    latencies = [timing.ended - timing.due for timing in found.requests]
    assert min(latencies) > 0
    assert max(latencies) < (most + 2) * 0.005 + 0.1


def test_late_answers_count_from_the_moment_the_request_was_due() -> None:
    found = run_pass(Slow(), ask(30), Arrivals("rate", 1000.0))
    moments = Arrivals("rate", 1000.0).moments(30)
    assert [timing.due for timing in sorted(found.requests, key=lambda t: int(t.id))] == moments
    assert found.requests[-1].ended - found.requests[-1].due > 0.05, "30 answers of 5 ms came within 30 ms"


# --- pages and workloads


def test_pages_are_the_same_every_time_and_differ_from_each_other() -> None:
    first, again, other = draw_page(0, 300, 420), draw_page(0, 300, 420), draw_page(1, 300, 420)
    assert first.image.size == (300, 420)
    assert first.image.tobytes() == again.image.tobytes()
    assert first.image.tobytes() != other.image.tobytes()
    dark = sum(first.image.convert("L").histogram()[:128]) / (300 * 420)
    assert 0.02 < dark < 0.4, "it is written on, and not black"


@pytest.mark.parametrize("size", [(112, 112), (2480, 300), (112, 1500)])
def test_pages_of_odd_sizes(size: tuple[int, int]) -> None:
    assert draw_page(3, *size).image.size == size


def test_questions_about_a_page_are_all_different() -> None:
    page = draw_page(0, 200, 200)
    asked = [question(page, number) for number in range(20)]
    assert len(set(asked)) == 20
    assert "Invoice number" in asked[0]


def test_a_workload_of_drawn_pages(tmp_path: Path) -> None:
    workload = of_drawn_pages(2, (200, 300), 3, 7, tmp_path / "pages")
    assert len(workload.questions) == 6
    assert len(workload.images) == 2
    requests = workload.requests(0, tmp_path / "varied")
    assert [request.id for request in requests] == ["0-0", "0-1", "0-2", "1-0", "1-1", "1-2"]
    assert {request.sampling.max_tokens for request in requests} == {7}
    assert requests[0].images == requests[2].images != requests[3].images
    assert workload.digest == of_drawn_pages(2, (200, 300), 3, 7, tmp_path / "again").digest
    assert workload.digest != of_drawn_pages(2, (200, 300), 3, 8, tmp_path / "again").digest
    assert workload.digest != of_drawn_pages(2, (200, 301), 3, 7, tmp_path / "again").digest


def test_rows_that_cannot_be_asked_are_left_out_and_named(tmp_path: Path) -> None:
    header = "data_index;image_path;question;answer"
    lines = [header, "a;good.png;What?;1", "b;none.png;What?;1", "c;bad.png;What?;1", "d;;Why?;1", "e;too;few"]
    (tmp_path / "annotation.csv").write_text("\n".join(lines) + "\n")
    Image.new("RGB", (60, 60)).save(tmp_path / "good.png")
    (tmp_path / "bad.png").write_bytes(b"no image")
    said: list[str] = []
    workload = of_dataset(VlmHyperBenchFormat().open(tmp_path, "cards"), None, 5, said.append)
    assert [question.id for question in workload.questions] == ["1", "4"]
    assert workload.name == "2 questions of cards"
    assert [note.split(":")[0] for note in said] == ["row 2 is left out", "row 3 is left out", "row 5 is left out"]
    first, second = workload.requests(0, tmp_path / "varied")
    assert (len(first.images), second.images) == (1, ())
    (tmp_path / "annotation.csv").write_text(f"{header}\nb;none.png;What?;1\n")
    with pytest.raises(ConfigError, match="no row that can be asked"):
        of_dataset(VlmHyperBenchFormat().open(tmp_path, "cards"), None, 5, said.append)


def test_variations_differ_in_a_corner_only(tmp_path: Path) -> None:
    workload = of_drawn_pages(1, (500, 700), 1, 7, tmp_path / "pages")
    seen = set()
    (plain,) = workload.images
    for variation in range(20):
        (request,) = workload.requests(variation, tmp_path / "varied")
        with Image.open(request.images[0].path or "") as varied, Image.open(plain) as original:
            seen.add(varied.tobytes())
            box = (10, 0, 500, 700)
            assert varied.crop(box).tobytes() == original.crop(box).tobytes()
    assert len(seen) == 20


# --- memory


def test_the_peak_counts_processes_below(tmp_path: Path) -> None:
    hold = "import time; held = bytearray(150 << 20); time.sleep(60)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {hold!r}])"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    try:
        with MemoryWatch(lambda: process.pid) as watch:
            assert wait_until(lambda: (watch.peak().host or 0) > 150 << 20, 10)
        assert (watch.peak().host or 0) < 400 << 20
        assert watch.peak().gpu is None
        assert cpu_seconds(process.pid) > 0
    finally:
        subprocess.run(["pkill", "-P", str(process.pid)], check=False)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_no_process_has_no_memory() -> None:
    with MemoryWatch(lambda: None) as watch:
        time.sleep(0.15)
    assert watch.peak().host is None
    assert cpu_seconds(2**22 - 1) == 0


# --- figures


def timing(id: int, ended: float, output: str = "a", due: float = 0.0, **fields: Any) -> Timing:
    known: dict[str, Any] = {
        "error": None,
        "output_tokens": 10,
        "prompt_tokens": 100,
        "cached_tokens": None,
        "queue_time": None,
        "time_to_first_token": None,
        "time_per_output_token": None,
        "total_time": ended,
    }
    return Timing(id=str(id), due=due, ended=ended, output=output, **{**known, **fields})


def engine(name: str, *passes: Pass, **fields: Any) -> EngineRecord:
    return EngineRecord(name=name, engine=name, engine_version="1", load_seconds=2.0, passes=passes, **fields)


AT_ONCE = Arrivals()


def one_pass(repeat: int, *timings: Timing, arrivals: Arrivals = AT_ONCE) -> Pass:
    return Pass(arrivals=arrivals, repeat=repeat, seconds=max(t.ended for t in timings), requests=timings)


def result(*engines: EngineRecord, **fields: Any) -> Bench:
    known: dict[str, Any] = {
        "vlmhb": "0",
        "made_at": "2026-01-01T00:00:00+00:00",
        "machine": {"processor": "P", "cores": 2},
        "model": "m",
        "fingerprint": "f",
        "options": (),
        "workload": "2 questions",
        "digest": "d",
        "requests": 2,
        "max_tokens": 8,
        "repeats": 2,
        "order": "alternating",
        "order_reason": "",
    }
    return Bench(engines=engines, **{**known, **fields})


def both() -> Bench:
    hf = [one_pass(n, timing(0, 1.0 * n), timing(1, 2.0 * n, time_to_first_token=0.5)) for n in (1, 2)]
    vllm = [one_pass(n, timing(0, 0.5 * n), timing(1, 1.0 * n, output="b" if n == 2 else "a")) for n in (1, 2)]
    return result(engine("hf", *hf), engine("vllm", *vllm))


def found_of(bench: Bench, name: str) -> Figures:
    return next(figures for figures in figures_of(bench) if figures.engine == name)


def test_rates_and_the_speedup() -> None:
    hf, vllm = found_of(both(), "hf"), found_of(both(), "vllm")
    assert hf.requests_per_second is not None
    assert hf.requests_per_second.value == pytest.approx((1.0 * 0.5) ** 0.5)
    assert hf.output_tokens_per_second is not None
    assert hf.output_tokens_per_second.value == pytest.approx((10.0 * 5.0) ** 0.5)
    assert hf.prompt_tokens_per_second is not None
    assert hf.prompt_tokens_per_second.value == pytest.approx((100.0 * 50.0) ** 0.5)
    assert vllm.speedup == (pytest.approx(2.0), pytest.approx(2.0), pytest.approx(2.0))
    assert hf.speedup is None
    assert hf.output_tokens == 20


def test_times_are_spread_over_all_repeats_and_absent_where_not_measured() -> None:
    hf, vllm = found_of(both(), "hf"), found_of(both(), "vllm")
    assert hf.latency.p50 == 2.0  # of 1, 2, 2, 4
    assert hf.latency.p90 == pytest.approx(3.4)
    assert hf.time_to_first_token.p50 == 0.5
    assert msgspec.to_builtins(vllm.time_to_first_token) == {"p50": None, "p90": None, "p99": None}
    assert hf.cached is None


def test_latency_counts_from_when_a_request_was_due() -> None:
    bench = result(engine("hf", one_pass(1, timing(0, 3.0, due=2.5), timing(1, 3.0, due=1.0))))
    assert found_of(bench, "hf").latency.p50 == pytest.approx(1.25)


def test_other_answers_are_counted_and_named() -> None:
    bench = both()
    vllm = found_of(bench, "vllm")
    assert (vllm.equal, vllm.compared, vllm.unequal) == (3, 4, ("1",))
    table = aligned(engines_table(bench, figures_of(bench)))
    assert "3 of 4 (!)" in table
    assert any("vllm: 1 answers are not those of hf, to requests 1" in note for note in notes(bench, figures_of(bench)))
    assert found_of(bench, "hf").equal is None


def test_failed_requests_are_no_speed() -> None:
    failed = timing(1, 2.0, output="", error="out of memory", output_tokens=None)
    bench = result(engine("hf", one_pass(1, timing(0, 1.0), failed)))
    found = found_of(bench, "hf")
    assert (found.answered, found.requests) == (1, 2)
    assert found.requests_per_second == (0.5, None, None)
    assert not bench.complete()
    assert any("no answer: out of memory (1 times)" in note for note in notes(bench, [found]))


def test_an_engine_that_answered_nothing_has_no_speed() -> None:
    failed = [timing(n, 1.0, output="", error="no", output_tokens=None, prompt_tokens=None) for n in range(2)]
    bench = result(engine("hf", one_pass(1, timing(0, 1.0))), engine("vllm", one_pass(1, *failed)))
    found = found_of(bench, "vllm")
    assert (found.requests_per_second, found.speedup, found.output_tokens_per_second) == (None, None, None)
    assert (found.compared, found.equal) == (0, 0)


def test_tokens_from_the_cache() -> None:
    timings = [timing(0, 1.0, cached_tokens=0), timing(1, 2.0, cached_tokens=80)]
    assert found_of(result(engine("hf", one_pass(1, *timings))), "hf").cached == 0.4


def test_measured_apart_the_speedup_is_not_paired() -> None:
    apart = msgspec.structs.replace(both(), order="in turn", order_reason="memory")
    found = found_of(apart, "vllm")
    assert found.speedup is not None
    assert found.speedup.value == pytest.approx(2.0)
    assert found.speedup.low is not None
    assert found.speedup.low < 1
    assert notes(apart, figures_of(apart))[0] == "one engine after another: memory"


# --- tables and files


def swept() -> Bench:
    ways = (Arrivals(), Arrivals("concurrency", 1), Arrivals("concurrency", 4))
    passes = [one_pass(1, timing(0, 4.0 / n), timing(1, 5.0 / n), arrivals=way) for n, way in enumerate(ways, 1)]
    return result(
        engine("hf", *passes, facts={"kv_cache_tokens": 4096, "hints": ["the cache is off"]}),
        EngineRecord(name="vllm", engine="vllm", engine_version=None, problem="it <refused> the model"),
        repeats=1,
    )


def test_the_sweep_has_a_line_for_each_way() -> None:
    table = sweep_table(figures_of(swept()))
    assert [line[0] for line in table[1:]] == ["all at once", "concurrency 1", "concurrency 4"]
    assert sweep_table(figures_of(both())) == []


def test_csv_has_a_line_for_every_engine_and_way(tmp_path: Path) -> None:
    bench = swept()
    write_csv(tmp_path / "new" / "bench.csv", bench, figures_of(bench))
    rows = read_csv(tmp_path / "new" / "bench.csv")
    assert tuple(rows[0]) == COLUMNS
    assert [row["arrivals"] for row in rows] == ["all at once", "concurrency 1", "concurrency 4", ""]
    assert rows[0]["requests_per_second"] == "0.4"
    assert rows[0]["requests_per_second_low"] == ""
    assert rows[0]["kv_cache_tokens"] == "4096"
    assert (rows[3]["engine"], rows[3]["problem"], rows[3]["load_seconds"]) == ("vllm", "it <refused> the model", "")
    assert set(csv_rows(bench, figures_of(bench))[0]) <= set(COLUMNS)


def test_the_files_hold_everything(tmp_path: Path) -> None:
    bench = swept()
    with RunFolder(tmp_path / "out") as home:
        page = save(bench, figures_of(bench), home).read_text(encoding="utf-8")
    assert read_bench(tmp_path / "out") == bench == read_bench(tmp_path / "out" / "bench.json")
    assert "it &lt;refused&gt; the model" in page
    assert "<refused>" not in page
    assert "hf: the cache is off" in page
    assert 'role="img" aria-label="Latency over throughput. hf, all at once: 0.4 requests/s' in page
    assert page.count("<polyline") == 1
    assert '<th scope="row"><bdi>3</bdi></th>' in page, "the number of the third point"
    assert "http" not in page.replace("http-equiv", "")


def test_a_result_without_any_figure_still_makes_a_page(tmp_path: Path) -> None:
    bench = result(EngineRecord(name="hf", engine="hf", engine_version=None, problem="no"))
    with RunFolder(tmp_path / "out") as home:
        page = save(bench, figures_of(bench), home).read_text(encoding="utf-8")
    assert "<svg" not in page
    assert "was not measured to the end: no" in page


# --- against


def faster(bench: Bench, times: float) -> Bench:
    def quick(one: Pass) -> Pass:
        timings = tuple(
            msgspec.structs.replace(t, ended=t.ended / times, time_to_first_token=None) for t in one.requests
        )
        return msgspec.structs.replace(one, seconds=one.seconds / times, requests=timings)

    engines = tuple(msgspec.structs.replace(e, passes=tuple(map(quick, e.passes))) for e in bench.engines)
    return msgspec.structs.replace(bench, engines=engines)


def test_twice_as_fast_as_before() -> None:
    found = changes(faster(both(), 2.0), both())
    values = {(change.engine, change.figure): change.ratio for change in found}
    rate, latency = values["hf", "requests/s"], values["hf", "latency"]
    assert rate is not None
    assert latency is not None
    assert rate.value == pytest.approx(2.0)
    assert latency.value == pytest.approx(0.5)
    assert ("hf", "time to first token") not in values, "it is not in both"
    assert differences(both(), both()) == []


def test_other_work_is_refused_and_other_things_are_named() -> None:
    with pytest.raises(ConfigError, match="different work"):
        changes(both(), msgspec.structs.replace(both(), digest="other"))
    before = result(
        EngineRecord(name="hf", engine="transformers", engine_version="0"),
        fingerprint="g",
        machine={"processor": "Q", "cores": 2},
        options=("dtype=float32",),
    )
    said = " | ".join(differences(both(), before))
    for part in ("the model is another one", "processor P, before Q", "options none, before dtype=float32", "before 0"):
        assert part in said


def test_what_is_no_result_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_bench(tmp_path)
    (tmp_path / "bench.json").write_text("{}")
    with pytest.raises(ConfigError, match="no result of vlmhb bench"):
        read_bench(tmp_path)
    content = msgspec.to_builtins(both())
    (tmp_path / "bench.json").write_bytes(msgspec.json.encode({**content, "format": 99}))
    with pytest.raises(ConfigError, match="measure again"):
        read_bench(tmp_path)
