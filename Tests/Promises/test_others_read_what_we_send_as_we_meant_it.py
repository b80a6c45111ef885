"""Promise: six servers read in what is forwarded the request that was to be sent, and clients read in what is answered the answer that was
received; or it was refused. A short form of `make differential`, and the proof that its oracle sees faults."""

import asyncio
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Differential"))

import chain  # noqa: E402
import clients  # noqa: E402
import making_answers  # noqa: E402
import making_requests  # noqa: E402
import planted  # noqa: E402
import servers  # noqa: E402

# The same messages in every run, so that a change elsewhere is not blamed for a new one; `make differential` tries others.
SEED = 9112
REQUESTS, ANSWERS = 4000, 4000


def test_servers_read_the_request_that_was_to_be_sent():
    tally = asyncio.run(chain.requests(REQUESTS, SEED))
    assert not tally.kinds, f"seed {SEED}\n{tally.text()}"
    # A gateway that refuses everything, or servers that do, would agree, too.
    assert tally.counts["forwarded"] > REQUESTS / 3, tally.text()
    for name in servers.NAMES:
        assert tally.counts[f"{name}: agreed"] > REQUESTS / 6, f"{name}\n{tally.text()}"


def test_clients_read_the_answer_that_was_received():
    tally = asyncio.run(chain.answers(ANSWERS, SEED))
    assert not tally.kinds, f"seed {SEED}\n{tally.text()}"
    assert tally.counts["passed on"] > ANSWERS / 3, tally.text()
    for name in clients.NAMES:
        agreed = tally.counts[f"{name}: agreed"] + tally.counts[f"{name}: agreed, and on the next answer"]
        assert agreed > ANSWERS / 3, f"{name}\n{tally.text()}"


@pytest.fixture(scope="module")
def seen_of_requests():
    return asyncio.run(planted.requests())


@pytest.fixture(scope="module")
def seen_of_answers():
    return asyncio.run(planted.answers())


@pytest.mark.parametrize("name", planted.REQUESTS)
def test_a_fault_planted_into_a_request_is_seen(seen_of_requests, name):
    seen = seen_of_requests[name]
    assert seen.by_reader, "the strict reader took it"
    if planted.REQUESTS[name][2]:
        assert seen.by_others == set(servers.NAMES)


@pytest.mark.parametrize("name", planted.ANSWERS)
def test_a_fault_planted_into_an_answer_is_seen(seen_of_answers, name):
    seen = seen_of_answers[name]
    assert seen.by_reader, "the strict reader took it"
    if planted.ANSWERS[name][2]:
        assert seen.by_others == set(clients.NAMES)


def test_where_nothing_is_planted_nothing_is_seen(seen_of_requests, seen_of_answers):
    for seen in (seen_of_requests, seen_of_answers):
        assert not seen[planted.UNCHANGED].by_reader and not seen[planted.UNCHANGED].by_others


def test_the_same_seed_makes_the_same_messages():
    numbers = (0, 1, 5, 1 << 24)
    for generator in (making_requests.Generator, making_answers.Generator):
        make = "script" if hasattr(generator, "script") else "exchange"
        forth, back = generator(SEED), generator(SEED)
        one = [getattr(forth, make)(number) for number in numbers]
        other = [getattr(back, make)(number) for number in reversed(numbers)]
        assert one == other[::-1]
        assert one != [getattr(generator(SEED + 1), make)(number) for number in numbers]
