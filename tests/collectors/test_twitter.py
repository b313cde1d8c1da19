"""Timelines without a feed: skipped, and collected once a bridge gives them as one."""

import pytest

from headwater.collectors.twitter import TwitterCollector, TwitterConfig
from headwater.errors import InputError
from headwater.sources.adding import read_new_source
from tests.collectors.test_rsshub import FEED
from tests.collectors.visits import Visits
from tests.origin import Origin


def test_without_a_bridge_there_is_a_reason_to_skip_it() -> None:
    assert "bridge_url" in str(TwitterCollector().why_skipped(TwitterConfig()))
    assert TwitterCollector().why_skipped(TwitterConfig(bridge_url="https://b.example/x")) is None


async def test_with_a_bridge_it_is_a_feed(origin: Origin) -> None:
    bridge = origin.route("/user/rss", body=FEED, etag='"1"')
    async with Visits(origin, "twitter_feed", "https://x.com/user", {"bridge_url": bridge}) as runs:
        assert await runs.cost() == (1, 1)
        assert (await runs.visit()).unchanged
    assert read_new_source(None, "twitter_list", {"bridge_url": bridge}).url == bridge
    with pytest.raises(InputError):
        read_new_source("https://x.com/user", "twitter_feed", {"bridge_url": "mine"})
