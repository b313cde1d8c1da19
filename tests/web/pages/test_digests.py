"""Digests in the browser."""

import html
from dataclasses import replace

from headwater.model import Item
from headwater.publish.digests import messages_of, read_digest
from headwater.publish.targets import read_target
from headwater.store.core.database import Store
from headwater.store.core.tables import deliveries
from headwater.store.publishing.digests import (
    Digest,
    NewIssue,
    add_digest,
    claim_digest,
    get_digest,
    settle_digest,
)
from headwater.store.publishing.targets import add_target
from headwater.store.reading.selection import Selection
from tests.clock import NOON, FakeClock
from tests.publish.test_outlets import store_items
from tests.web.pages.conftest import Visitor

SPORTS = Selection(search="poker")


def test_issue_shows_what_became_of_its_messages(visitor: Visitor, store: Store, clock: FakeClock) -> None:
    with store.writing() as connection:
        store_items(connection, Item("1", url="https://one.example/1", title="One"), folder="News")
        add_target(connection, read_target("ann", "email", {"recipients": ["ann@example.org"]}), clock())
        digest = Digest("morning", "News", "every 1 hours", targets=("ann",))
        added = add_digest(connection, read_digest(digest, clock()), clock())
        claimed = claim_digest(connection, now=clock() + 9_999, lease_until=clock() + 99_999)
        assert claimed is not None
        issue = NewIssue("Issue 1", "text", "<h1>Issue 1</h1>", (1,), language="zh")
        messages = messages_of(replace(added, due_at=claimed.due_at), issue)
        settle_digest(
            connection, claimed, [issue], messages, position=1, next_at=clock() + 99_000, now=clock()
        )
        refused = deliveries.update().values(status="failed", error_message="no such mailbox", due_at=None)
        connection.execute(refused)
    assert "no such mailbox" in visitor.see("/digest-issues/1")
    fields = {"page": "/digest-issues/1", "back": "/digest-issues/1"}
    again = visitor.send("/deliveries/1/retry", **fields)
    assert again.url.path == "/digest-issues/1"


def test_digest_is_added_shown_and_removed(visitor: Visitor, store: Store, clock: FakeClock) -> None:
    with store.writing() as connection:
        store_items(connection, Item("1", url="https://one.example/1", title="One"), folder="News")
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
    sent = visitor.send("/digest-issues/1/send", page="/digest-issues/1")
    assert (sent.status_code, "has no targets" in sent.text) == (400, True)
    assert "made again" in visitor.send("/digest-issues/1/remake", page="/digest-issues/1").text
    assert "alert(1)" not in visitor.see("/digest-issues/1")
    assert "changed digest" in visitor.send("/digests/morning/switch", page="/digests/morning").text
    assert "removed digest morning" in visitor.send("/digests/morning/remove", page="/digests/morning").text
    assert visitor.client.get("/digests/morning").status_code == 404


def test_digest_that_cannot_work_is_refused_on_the_page(visitor: Visitor) -> None:
    answer = visitor.send("/digests", page="/digests", name="a", schedule="sometimes")
    assert answer.status_code == 400
    assert "cannot be read" in html.unescape(answer.text)


def test_digest_is_edited_and_keeps_what_the_form_does_not_show(visitor: Visitor, store: Store) -> None:
    with store.writing() as connection:
        store_items(connection, Item("1", url="https://one.example/1", title="One"), folder="News")
        digest = Digest(
            "morning", "Morning", "daily 07:30", config={"model": "tiny", "write": "introduction"}
        )
        add_digest(connection, read_digest(digest, NOON), NOON)
    assert 'value="daily 07:30"' in visitor.see("/digests/morning/edit")
    fields = {"schedule": "weekly mon 08:00", "zone": "Europe/Berlin", "min_score": "7", "languages": "zh"}
    answer = visitor.send("/digests/morning/edit", page="/digests/morning/edit", max_items="5", **fields)
    assert "no pipeline makes score yet: attach one with the step score_content" in answer.text
    assert "no pipeline makes translation:zh yet" in answer.text
    with store.reading() as connection:
        changed = get_digest(connection, "morning")
    assert (changed.schedule, changed.selection.min_score) == ("weekly mon 08:00", 7.0)
    assert changed.config == {"model": "tiny", "write": "list", "languages": ["zh"], "max_items": 5}
    refused = visitor.send("/digests/morning/edit", page="/digests/morning/edit", schedule="sometimes")
    assert refused.status_code == 400
    assert 'value="sometimes"' in refused.text, "what was typed is kept"


def test_preview_shows_the_newest_items_when_nothing_is_new(visitor: Visitor, store: Store) -> None:
    with store.writing() as connection:
        store_items(connection, Item("1", url="https://one.example/1", title="One"), folder="News")
    with store.writing() as connection:
        add_digest(connection, read_digest(Digest("all", "All", "every 1 hours"), NOON), NOON)
        add_digest(
            connection, read_digest(Digest("none", "None", "every 1 hours", selection=SPORTS), NOON), NOON
        )
    shown = visitor.see("/digests/all/preview")
    assert "There is nothing new." in shown
    assert "<h1>All" in shown
    assert "No item matches this digest." in visitor.see("/digests/none/preview")
