"""Which requests are asked again, and with whom: every one ends once, only culprits fail, few deaths are needed."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vlmhb import GenerationRequest, GenerationResult
from vlmhb.worker.recovery import Item, Queue, Restarts


def simulate(count: int, culprits: set[int], batch: int, window: int = 64) -> tuple[list[GenerationResult], int, int]:
    """Run a queue against an engine that takes ``batch`` at a time and dies at a culprit; counts deaths and asks."""
    queue = Queue(GenerationRequest.ask(str(number), "q") for number in range(count))
    results: list[GenerationResult] = []
    deaths = asks = 0
    while queue.has_more():
        round = queue.next_round()
        sent: list[Item] = []
        while True:
            while len(sent) < window and (item := next(round.items, None)) is not None:
                sent.append(item)
            taken, sent = sent[:batch], sent[batch:]
            if not taken:
                break
            died = False
            while taken and not died:
                asks += 1
                died = int(taken[0].request.id) in culprits
                if not died:
                    item = taken.pop(0)
                    results.append(item.finish(GenerationResult(id=item.request.id, finish_reason="stop")))
            if died:
                deaths += 1
                results += queue.died(round, taken, sent, "died", "worker_died")
                break
    return results, deaths, asks


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_everyone_ends_once_and_only_culprits_fail(data):
    count = data.draw(st.integers(0, 120))
    culprits = data.draw(st.sets(st.integers(0, max(0, count - 1)), max_size=8))
    culprits = {c for c in culprits if c < count}
    batch = data.draw(st.integers(1, 70))
    results, _, _ = simulate(count, culprits, batch)
    assert sorted(int(r.id) for r in results) == list(range(count))
    assert {int(r.id) for r in results if not r.ok} == culprits


@pytest.mark.parametrize("batch", [1, 2, 8, 64, 256])
@pytest.mark.parametrize("culprit", [0, 7, 100, 255])
def test_one_culprit_costs_at_most_three_deaths(batch, culprit):
    results, deaths, asks = simulate(256, {culprit}, batch, window=256)
    assert deaths <= 3
    assert asks <= 256 + 3 + 2 * math.isqrt(batch)
    (failed,) = [r for r in results if not r.ok]
    assert failed.failure.kind == "worker_died"
    assert f"each of the {deaths} times" in failed.failure.message


def test_only_the_suspects_say_that_they_were_asked_again():
    results, _, _ = simulate(100, {10}, batch=8)
    assert {int(r.id) for r in results if r.notes} == {10, 11, 12, 13, 14, 15}


def test_the_caller_s_iterable_is_not_read_at_a_death():
    read = []

    def source():
        for number in range(1000):
            read.append(number)
            yield GenerationRequest.ask(str(number), "q")

    queue = Queue(source())
    round = queue.next_round()
    taken = [next(round.items), next(round.items)]
    assert queue.died(round, taken, [next(round.items)], "died", "worker_died") == []
    assert read == [0, 1, 2]
    assert [[i.request.id for i in queue.next_round().items] for _ in range(2)] == [["0"], ["1"]]
    others = queue.next_round()
    assert not others.suspects
    assert [next(others.items).request.id for _ in range(3)] == ["2", "3", "4"]


def test_untaken_suspects_stay_apart_from_the_innocent():
    queue = Queue(iter([]))
    items = [Item(request=GenerationRequest.ask(str(n), "q"), deaths=1) for n in range(4)]
    round = queue.next_round()
    round.suspects, round.items = True, iter(items[2:])
    assert [r.id for r in queue.died(round, [items[0]], [items[1]], "died", "engine")] == ["0"]
    again = queue.next_round()
    assert again.suspects
    assert [i.request.id for i in again.items] == ["1", "2", "3"]


def test_streamed_text_continues_where_it_was():
    item = Item(request=GenerationRequest.ask("a", "q"))
    assert item.new_text("one ") + item.new_text("two") == "one two"
    Queue(iter([])).died(Queue(iter([])).next_round(), [item], [], "died", "worker_died")
    assert [item.new_text(piece) for piece in ("on", "e tw", "o thr", "ee")] == ["", "", " thr", "ee"]


def test_skip_all_names_everything_that_was_read():
    queue = Queue(GenerationRequest.ask(str(n), "q") for n in range(9))
    round = queue.next_round()
    taken = [next(round.items) for _ in range(5)]
    queue.died(round, taken, [next(round.items)], "died", "worker_died")
    skipped = queue.skip_all()
    assert sorted(r.id for r in skipped) == ["0", "1", "2", "3", "4", "5"]
    assert {r.finish_reason for r in skipped} == {"skipped"}


def test_restarts_are_counted_in_a_row():
    restarts = Restarts(2)
    assert [restarts.another(), restarts.another()] == [True, True]
    restarts.answered()
    assert [restarts.another() for _ in range(3)] == [True, True, False]


def test_culprits_in_a_row_are_limited_too():
    restarts = Restarts(1)
    outcome = []
    for _ in range(3):
        restarts.culprit_found()
        outcome.append(restarts.another())
    assert outcome == [True, False, False]
    assert not Restarts(0).another()
