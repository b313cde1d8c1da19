"""Waiting by host: no source waits behind another's slow host."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.collect.host_queues import WAITING, HostQueues, host_of
from headwater.model import Source


def source(number: int, host: str = "slow.example") -> Source:
    return Source(number, f"s{number}", "rss.feed", f"https://{host}/{number}")


def drain(queues: HostQueues) -> list[int]:
    taken = []
    while found := queues.take():
        taken.append(found.id)
    return taken


def test_a_busy_host_holds_up_only_its_own() -> None:
    queues = HostQueues(2, 0.5)
    queues.add([source(n) for n in range(5)] + [source(9, "fast.example")])
    assert drain(queues) == [0, 1, 9]
    queues.done(source(0), 1.0)
    assert drain(queues) == [2]


def test_a_long_line_is_told_to_come_back_spread_out() -> None:
    queues = HostQueues(1, 0.5)
    late = queues.add([source(n) for n in range(WAITING + 4)])
    assert [found.id for found, _ in late] == [
        WAITING + 1,
        WAITING + 2,
        WAITING + 3,
    ]
    waits = [seconds for _, seconds in late]
    assert waits == sorted(set(waits))
    assert waits[0] >= WAITING * 0.5, "not before those in front have had their turn"


def test_a_slow_host_spreads_further() -> None:
    def first_wait(seconds: float) -> float:
        queues = HostQueues(1, 0.5)
        queues.add([source(0), source(1)])
        queues.take()
        queues.done(source(0), seconds)
        return queues.add([source(n) for n in range(2, WAITING + 4)])[0][1]

    assert first_wait(30.0) > 10 * first_wait(0.1)


def test_clearing_gives_everyone_back_who_has_not_begun() -> None:
    queues = HostQueues(1, 0.0)
    queues.add([source(n) for n in range(4)])
    begun = queues.take()
    assert begun is not None
    assert {found.id for found in queues.clear()} == {1, 2, 3}
    queues.done(begun, 1.0)
    queues.add([source(7)])
    assert drain(queues) == [7]


def test_hosts() -> None:
    assert host_of("https://ann@One.Example:8080/x") == "one.example"
    assert host_of("http://[broken") == ""


@given(
    st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=60),
    st.integers(1, 3),
)
def test_everyone_is_visited_once_or_told_when(steps: list[tuple[int, bool]], per_host: int) -> None:
    """However visits begin and end: never more than `per_host` of a host at once, and none is forgotten."""
    queues = HostQueues(per_host, 0.1)
    under_way: list[Source] = []
    seen: set[int] = set()
    late: set[int] = set()
    for number, (host, end_one) in enumerate(steps):
        late |= {found.id for found, _ in queues.add([source(number, f"h{host}")])}
        while found := queues.take():
            under_way.append(found)
            seen.add(found.id)
        for name in {host_of(each.url) for each in under_way}:
            assert sum(host_of(each.url) == name for each in under_way) <= per_host
        if end_one and under_way:
            queues.done(under_way.pop(0), 1.0)
    while True:
        while found := queues.take():
            under_way.append(found)
            seen.add(found.id)
        if not under_way:
            break
        queues.done(under_way.pop(0), 1.0)
    assert seen | late == set(range(len(steps)))
    assert not seen & late
