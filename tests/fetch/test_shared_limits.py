"""Limits that several sources share: found by their 429s, kept, and forgotten again."""

import pytest

from headwater.errors import FailureKind, FetchError
from headwater.fetch import Request
from headwater.fetch.shared_limits import MEMORY_SECONDS, SharedLimits, find_keys, find_site
from tests.fetch import door
from tests.fetch.test_politeness import Clock
from tests.origin import Origin

ADDRESS = "192.0.2.7"


class Platform:
    """Sources by host, and a server that takes `most` requests in `seconds` from all of them together."""

    def __init__(self, hosts: list[str], *, most: int = 60, seconds: float = 3600.0) -> None:
        self.clock = Clock()
        self.limits = SharedLimits(clock=self.clock)
        self.hosts, self.most, self.seconds = hosts, most, seconds
        self.served: list[float] = []
        self.refused: list[float] = []

    def request(self, host: str, account: str | None = None, addresses: tuple[str, ...] = (ADDRESS,)) -> bool:
        """Whether it was sent."""
        wait, group = self.limits.enter(find_keys(host, account, addresses)) if self.limits else (0.0, None)
        if group is not None:
            return False
        now = self.clock.now + wait
        self.served = [at for at in self.served if now - at < self.seconds]
        if len(self.served) >= self.most:
            self.refused.append(now)
            self.limits.refuse(f"https://{host}/", host, account, addresses, None)
        else:
            self.served.append(now)
        return True

    def run(self, hours: float, every: float) -> int:
        """A request every so many seconds, of each source in turn. Returns how many were refused."""
        before, end, number = len(self.refused), self.clock.now + 3600 * hours, 0
        while self.clock.now < end:
            self.request(self.hosts[number % len(self.hosts)])
            self.clock.now += every
            number += 1
        return len(self.refused) - before


def refuse(
    platform: Platform, *hosts: str, account: str | None = None, addresses: tuple[str, ...] = ()
) -> None:
    for host in hosts:
        platform.limits.refuse(f"https://{host}/{host}", host, account, addresses, None)


def wait_of(platform: Platform, host: str, account: str | None = None, *addresses: str) -> float:
    return platform.limits.enter(find_keys(host, account, addresses))[0]


def test_group_over_its_limit_is_refused_less_and_less() -> None:
    platform = Platform([f"blog{number}.platform.example" for number in range(30)])
    first = platform.run(2, every=20)
    assert first >= 2
    platform.run(4, every=20)
    assert platform.run(12, every=20) <= 12, "where all its requests would be refused 2 of 3 times: 1440"
    assert len(platform.served) >= 25, "and what it takes is used"


@pytest.mark.parametrize(
    ("refused", "member", "stranger"),
    [
        (("a.platform.example", "b.platform.example"), "c.platform.example", "c.other.example"),
        (("one.example", "one.example/2"), "one.example", "two.example"),
    ],
)
def test_sources_of_one_site_are_paced_and_others_are_not(
    refused: tuple[str, str], member: str, stranger: str
) -> None:
    platform = Platform([])
    for each in refused:
        platform.limits.refuse(f"https://{each}", each.split("/")[0], None, (), None)
    assert wait_of(platform, member) >= 60
    assert wait_of(platform, stranger) == 0


def test_sites_behind_one_address_are_paced() -> None:
    platform = Platform([])
    refuse(platform, "one.example", "two.example", addresses=(ADDRESS,))
    assert wait_of(platform, "three.example", None, ADDRESS) >= 60
    assert wait_of(platform, "three.example", None, "192.0.2.8") == 0


def test_sources_of_one_account_are_paced() -> None:
    platform = Platform([])
    refuse(platform, "api.one.example", "api.two.example", account="ann")
    assert wait_of(platform, "api.three.example", "ann") >= 60
    assert wait_of(platform, "api.three.example", "bob") == 0


def test_single_refused_source_paces_no_other() -> None:
    platform = Platform([])
    refuse(platform, "a.platform.example", "a.platform.example", addresses=(ADDRESS,))
    for host in ("a.platform.example", "b.platform.example", "other.example"):
        assert wait_of(platform, host, None, ADDRESS) == 0


def test_requests_beyond_patience_are_spread_over_the_time_after() -> None:
    platform = Platform([])
    refuse(platform, "a.platform.example", "b.platform.example")
    platform.limits.enter(find_keys("a.platform.example", None, ()))
    answers = [platform.limits.enter(find_keys("c.platform.example", None, ())) for _ in range(3)]
    assert [name for _, name in answers] == ["platform.example"] * 3
    first, second, third = (seconds for seconds, _ in answers)
    assert 60 < first < second < third


def test_limit_without_refusals_is_forgotten() -> None:
    platform = Platform([])
    refuse(platform, "a.platform.example", "b.platform.example")
    for _ in range(24):
        platform.clock.now += MEMORY_SECONDS
        wait_of(platform, "a.platform.example")
        wait_of(platform, "b.platform.example")
    assert not platform.limits


def test_groups_are_bounded() -> None:
    platform = Platform([])
    for number in range(3000):
        refuse(platform, f"www.site{number}.example", addresses=(f"192.0.2.{number % 256}",))
        platform.clock.now += 10
    assert len(platform.limits._groups) < 2000


@pytest.mark.parametrize(
    ("host", "site"),
    [
        ("example.org", "example.org"),
        ("a.b.example.org", "example.org"),
        ("feeds.news.co.uk", "news.co.uk"),
        ("localhost", "localhost"),
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8::1", "2001:db8::1"),
    ],
)
def test_find_site(host: str, site: str) -> None:
    assert find_site(host) == site


async def test_fetcher_keeps_hosts_that_share_a_limit_apart(origin: Origin) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    for path in ("/a", "/b"):
        origin.route(path, status=429, headers={"Retry-After": "120"})
    origin.route("/c", body=b"fine")
    urls = [origin.url(f"/{name}", host=f"{name}.platform.example") for name in "abc"]
    async with door(resolve=resolve, patience_seconds=1.0) as fetcher:
        for url in urls[:2]:
            with pytest.raises(FetchError, match="429"):
                await fetcher.get(Request(url))
        with pytest.raises(FetchError, match=r"too many requests to platform\.example") as caught:
            await fetcher.get(Request(urls[2]))
    assert caught.value.kind is FailureKind.RATE_LIMITED
    assert caught.value.http_status is None
    assert 100 < (caught.value.retry_after_seconds or 0.0) < 240
    assert not origin.received("/c")
