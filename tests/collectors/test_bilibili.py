"""bilibili: signed requests with the keys of the day, and its risk control told as what it is."""

import pytest

from headwater.collectors.bilibili import KEY_SECONDS, BilibiliCollector, mix_key, read_memory, sign
from headwater.errors import FailureKind, InputError
from headwater.sources.adding import read_new_source
from tests.clock import FakeClock
from tests.collectors.visits import Visits, told
from tests.fake_services import BASE_TIME, CAPTCHA, PAGE, Bilibili, as_json, as_page
from tests.origin import Answer, Origin


def visits(origin: Origin, site: Bilibili, clock: FakeClock, **config: object) -> Visits:
    return Visits(
        origin,
        "bilibili",
        "https://space.bilibili.com/1234/video",
        {"base_url": site.url, **config},
        collector=BilibiliCollector(clock),
    )


def test_signatures_are_those_of_the_site() -> None:
    """With published examples."""
    key = mix_key("7cd084941338484aae1ad9425b84077c", "4932caff0ff746eab6f01bf08b70ac45")
    assert key == "ea1db124af3c7062474693fa704f4ff8"
    assert sign({"foo": "114", "bar": "514", "zab": 1919810}, key, 1702204169) == (
        "bar=514&foo=114&wts=1702204169&zab=1919810&w_rid=8f6f2b5b3d485fe1886cec6a0be8c5d4"
    )
    other = mix_key("653657f524a547ac981ded72ea172057", "6e4909c702f846728e64f6007736a338")
    assert sign({"foo": "114", "bar": "514", "baz": 1919810}, other, 1684746387).endswith(
        "w_rid=d3cbd2a2316089117134038bf4caf442"
    )


def test_what_is_not_signed_is_not_sent() -> None:
    assert sign({"keyword": "a!'()*b c"}, "", 1).startswith("keyword=ab%20c&wts=1&")


async def test_a_video_becomes_an_item(origin: Origin, clock: FakeClock) -> None:
    site = Bilibili(origin)
    site.add(1)
    async with visits(origin, site, clock) as runs:
        result = await runs.visit()
    (video,) = result.items
    assert (video.external_id, video.url) == ("BV1xx000001", "https://www.bilibili.com/video/BV1xx000001")
    assert (video.title, video.author, video.summary) == ("视频 1", "UP主", "第 1 期")
    assert (video.published_at, video.comments_count) == (BASE_TIME + 1.0, 12)
    assert video.image_url == "https://i0.hdslb.com/bfs/archive/1.jpg"
    assert (result.metadata.title, result.metadata.site_url) == ("UP主", "https://space.bilibili.com/1234")


async def test_the_keys_are_asked_for_once_a_day(origin: Origin, clock: FakeClock) -> None:
    site = Bilibili(origin)
    site.add(*range(1, 6))
    async with visits(origin, site, clock) as runs:
        assert await runs.cost() == (5, 2)
        assert await runs.cost() == (0, 1)
        clock.advance(KEY_SECONDS + 1)
        assert await runs.cost() == (0, 2)


async def test_changed_keys_are_requested_again(origin: Origin, clock: FakeClock) -> None:
    site = Bilibili(origin)
    site.add(1)
    async with visits(origin, site, clock) as runs:
        await runs.visit()
        site.keys = (site.keys[1], site.keys[0])
        site.add(2)
        assert await runs.cost() == (1, 3), "refused, the new keys, and the videos"
        assert await runs.cost() == (0, 1)


async def test_pages_until_one_has_a_known_video(origin: Origin, clock: FakeClock) -> None:
    site = Bilibili(origin)
    site.add(*range(1, 71))
    async with visits(origin, site, clock, limit=100) as runs:
        assert await runs.cost() == (70, 4)
        site.add(*range(71, 106))
        assert await runs.cost() == (35, 2)


async def test_a_limit_is_kept(origin: Origin, clock: FakeClock) -> None:
    site = Bilibili(origin)
    site.add(*range(1, 71))
    async with visits(origin, site, clock, limit=10) as runs:
        assert await runs.cost() == (10, 2)


@pytest.mark.parametrize(
    ("answer", "told_as", "words"),
    [
        (as_json({"code": -352, "message": "风控校验失败"}), (FailureKind.FORBIDDEN, 200), "risk control"),
        (
            as_json({"code": 0, "data": {"v_voucher": "voucher_1"}}),
            (FailureKind.FORBIDDEN, 200),
            "risk control",
        ),
        (
            as_json({"code": -412, "message": "请求被拦截"}, status=412),
            (FailureKind.FORBIDDEN, 412),
            "risk control",
        ),
        (as_page(PAGE, status=412), (FailureKind.FORBIDDEN, 412), "risk control"),
        (
            as_json({"code": -799, "message": "请求过于频繁"}),
            (FailureKind.RATE_LIMITED, 200),
            "fewer requests",
        ),
        (as_json({"code": -404, "message": "啥都木有"}), (FailureKind.NOT_FOUND, 200), "啥都木有"),
        (as_json({"code": -101, "message": "账号未登录"}), (FailureKind.UNAUTHORIZED, 200), "账号未登录"),
        (as_page(CAPTCHA), (FailureKind.FORBIDDEN, 200), "captcha"),
        (as_page(PAGE), (FailureKind.NOT_A_FEED, None), "web page"),
        (as_json({"videos": []}), (FailureKind.CHANGED_STRUCTURE, None), "code"),
        (
            as_json({"code": 0, "data": {"videos": []}}),
            (FailureKind.CHANGED_STRUCTURE, None),
            "data.list.vlist",
        ),
        (
            as_json({"code": 0, "data": {"list": {"vlist": [{"name": "x"}]}}}),
            (FailureKind.CHANGED_STRUCTURE, None),
            "bvid",
        ),
        (
            as_json({"code": 0, "data": {"list": {"vlist": []}, "page": {"pn": 1, "count": 7}}}),
            (FailureKind.CHANGED_STRUCTURE, None),
            "vlist",
        ),
        (
            as_json({"code": 0, "data": {"list": {"vlist": []}, "page": {"pn": 1, "count": 0}}}),
            (FailureKind.CHANGED_STRUCTURE, 200),
            "lists nothing",
        ),
    ],
)
async def test_bad_days(
    origin: Origin, clock: FakeClock, answer: Answer, told_as: tuple[FailureKind, int | None], words: str
) -> None:
    site = Bilibili(origin)
    site.add(1)
    async with visits(origin, site, clock) as runs:
        await runs.visit()
        site.bad_day = answer
        error = await runs.failure()
        assert told(error) == told_as
        assert words in str(error)
        site.bad_day = None
        assert await runs.cost() == (0, 1)


def test_addresses() -> None:
    wanted = read_new_source("https://space.bilibili.com/1234/video?tid=0")
    assert (wanted.type.name, wanted.url, wanted.config) == (
        "video.bilibili",
        "https://space.bilibili.com/1234",
        {"uid": 1234},
    )
    assert read_new_source(None, "bilibili", {"uid": 7}).url == "https://space.bilibili.com/7"
    for url, config in (("https://www.bilibili.com/video/BV1", {}), (None, {}), (None, {"uid": "me"})):
        with pytest.raises(InputError):
            read_new_source(url, "bilibili", config)


@pytest.mark.parametrize("memory", [None, b"", b"nonsense", b"[]", b'{"key": "x"}'])
def test_a_damaged_memory_is_none(memory: bytes | None) -> None:
    assert read_memory(memory) is None
