"""Frames over a real socket: nothing is lost, torn or trusted."""

from __future__ import annotations

import socket
import struct
import threading

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vlmhb import GenerationRequest, GenerationResult, ImageInput, SamplingParams, TokenLogprob
from vlmhb.errors import WorkerError
from vlmhb.worker import protocol as p
from vlmhb.worker.process import exit_words


@pytest.fixture
def ends():
    left, right = socket.socketpair()
    yield p.Channel(left, p.FromWorker), p.Channel(right, p.ToWorker), left, right
    left.close()
    right.close()


def test_request_arrives_whole(ends):
    here, there, *_ = ends
    request = GenerationRequest.ask(
        "№1",
        "Сколько? <|image_pad|>",
        [ImageInput(data=bytes(range(256)) * 5000), ImageInput(path="/a/б.png", name="page")],
        system="Be brief.",
        sampling=SamplingParams(max_tokens=3, temperature=0.5, stop=("\n", "конец")),
        json_schema={"type": "object", "properties": {"a": {"enum": [1, None, "x"]}}},
        logprobs=2,
    )
    sender = threading.Thread(target=here.send, args=(p.Ask(7, request),))
    sender.start()
    assert there.receive() == p.Ask(7, request)
    sender.join()


def test_result_arrives_whole(ends):
    here, there, *_ = ends
    result = GenerationResult(
        id="1",
        text="ответ",
        token_ids=(1, 2),
        finish_reason="length",
        prompt_tokens=5,
        time_to_first_token=0.25,
        notes=("a",),
        prompt_token_ids=(9, 8),
        logprobs=((TokenLogprob(1, -0.5), TokenLogprob(3, -2.0)), ()),
    )
    there.send(p.Answer(1, result))
    assert here.receive(1.0) == p.Answer(1, result)


@given(st.lists(st.text(max_size=300), max_size=40), st.integers(1, 50))
@settings(max_examples=50, deadline=None)
def test_frames_survive_any_cutting(texts, step):
    left, right = socket.socketpair()
    with left, right:
        channel = p.Channel(right, p.FromWorker)
        encoder = msgspec.msgpack.Encoder()
        bodies = [encoder.encode(p.TextDelta(1, "id", text.encode("utf-8", "replace").decode())) for text in texts]
        stream = b"".join(struct.pack(">I", len(body)) + body for body in bodies)

        def send() -> None:
            for start in range(0, len(stream), step):
                left.sendall(stream[start : start + step])

        sender = threading.Thread(target=send)
        sender.start()
        got = [channel.receive(5.0).text for _ in texts]
        sender.join()
    assert got == [text.encode("utf-8", "replace").decode() for text in texts]


def test_silence_and_the_end(ends):
    here, there, _left, right = ends
    assert here.receive(0.0) is None
    assert here.receive(0.05) is None
    there.send(p.Done(1))
    right.close()
    assert here.receive(1.0) == p.Done(1)
    with pytest.raises(EOFError):
        here.receive(1.0)


@pytest.mark.parametrize("body", [b"\xc1", b"cos\nsystem\n(S'true'\ntR.", msgspec.msgpack.encode({"type": "nonesuch"})])
def test_what_is_no_message_is_an_error_in_words(ends, body):
    here, _, _, right = ends
    right.sendall(struct.pack(">I", len(body)) + body)
    with pytest.raises(WorkerError, match="not valid"):
        here.receive(1.0)


def test_message_of_the_other_direction_is_refused(ends):
    here, there, _left, _ = ends
    here.send(p.Done(1))
    with pytest.raises(WorkerError, match="not valid"):
        there.receive(1.0)


def test_hello_of_a_later_version_can_be_read(ends):
    here, _, _, right = ends
    body = msgspec.msgpack.encode(
        {"type": "hello", "protocol": 9, "contract": 2, "core": "9.0", "python": "3.20", "pid": 1, "later": [1]}
    )
    right.sendall(struct.pack(">I", len(body)) + body)
    assert here.receive(1.0).protocol == 9


def test_failed_encoding_sends_nothing(ends):
    here, there, *_ = ends
    with pytest.raises(ValueError):
        there.send(p.TextDelta(1, "a", "\ud800"))
    there.send(p.Done(2))
    assert here.receive(1.0) == p.Done(2)


def test_senders_do_not_mix_their_frames(ends):
    here, there, *_ = ends
    big = "x" * 200_000

    def send(number: int) -> None:
        for _ in range(20):
            there.send(p.TextDelta(number, "id", big))

    threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    got = [here.receive(5.0) for _ in range(80)]
    for thread in threads:
        thread.join()
    assert sorted(message.call for message in got) == sorted([0, 1, 2, 3] * 20)
    assert all(message.text == big for message in got)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "ended with exit code 0"),
        (3, "ended with exit code 3"),
        (-9, "was killed by SIGKILL (out of memory is the usual reason when nobody sent it)"),
        (-11, "was killed by SIGSEGV (a crash in native code)"),
        (-15, "was killed by SIGTERM"),
        (-63, "was killed by signal 63"),
    ],
)
def test_exit_codes_in_words(code, words):
    assert exit_words(code) == words
