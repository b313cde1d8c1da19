"""The statistics on their page and on a source's."""

import re

from headwater.smart_scheduler import update_source_stats
from headwater.store.collecting.sources import add_source
from headwater.store.core.database import Store
from tests.clock import NOON
from tests.web.pages.conftest import Visitor


def words(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def test_statistics_are_on_their_page_and_linked_from_the_overview(visitor: Visitor, store: Store) -> None:
    assert "– of visits found new items (0 of 0)" in words(visitor.see("/statistics"))
    with store.writing() as connection:
        add_source(connection, name="One", type="rss.feed", url="https://one.example/", now=NOON)
        update_source_stats(connection, "1", has_new_entries=True, now=NOON, commit=False)
        update_source_stats(connection, "1", error_message="429", now=NOON, commit=False)
    assert 'href="/statistics"' in visitor.see("/")
    page = words(visitor.see("/statistics"))
    for text in ("1 in back-off", "1 failing", "50.0 % of visits found new items (1 of 2)", "daily", "P2"):
        assert text in page
    facts = words(visitor.see("/sources/1"))
    assert "daily · cadence P2 · 50.0 % of visits found new items · in back-off; ends in 6 h" in facts
