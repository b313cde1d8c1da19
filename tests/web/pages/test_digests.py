"""Digests in the browser."""

import html

from headwater.store.core.database import Store
from headwater.store.publishing.digests import NewIssue, claim_digest, settle_digest
from tests.clock import FakeClock
from tests.publish.test_outlets import store_items
from tests.web.pages.conftest import Visitor


def test_digest_is_added_shown_and_removed(visitor: Visitor, store: Store, clock: FakeClock) -> None:
    with store.writing() as connection:
        store_items(connection, folder="News")
    fields = {"name": "morning", "schedule": "daily 07:30", "folder": "News", "title": "<b>News</b>"}
    page = visitor.send("/digests", page="/digests", **fields).text
    assert "added digest morning" in page
    assert "&lt;b&gt;News" in page
    assert "No issue has been made yet." in visitor.see("/digests/morning")
    assert "is due now" in visitor.send("/digests/morning/make", page="/digests/morning").text
    with store.writing() as connection:
        claimed = claim_digest(connection, now=clock() + 1, lease_until=clock() + 60)
        assert claimed is not None
        issue = NewIssue("Issue 1", "text", "<h1>Issue 1</h1><script>alert(1)</script>", (1,))
        settle_digest(connection, claimed, [issue], [], position=1, next_at=clock() + 99_000, now=clock())
    assert "Issue 1" in visitor.see("/digests/morning")
    shown = visitor.see("/digest-issues/1")
    assert "<h1>Issue 1</h1>" in shown
    assert "alert(1)" not in shown
    assert "changed digest" in visitor.send("/digests/morning/switch", page="/digests/morning").text
    assert "removed digest morning" in visitor.send("/digests/morning/remove", page="/digests/morning").text
    assert visitor.client.get("/digests/morning").status_code == 404


def test_digest_that_cannot_work_is_refused_on_the_page(visitor: Visitor) -> None:
    answer = visitor.send("/digests", page="/digests", name="a", schedule="sometimes")
    assert answer.status_code == 400
    assert "cannot be read" in html.unescape(answer.text)
