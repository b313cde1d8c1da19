"""Targets in the browser: added, tried, changed without showing their secrets, and what became of their messages."""

import html

from headwater.model import Item
from headwater.store.core.database import Store
from headwater.store.core.tables import deliveries
from headwater.store.publishing.outbox import NewDelivery, list_deliveries, put_in_outbox
from headwater.store.publishing.targets import get_target
from tests.clock import NOON
from tests.publish.test_outlets import store_items
from tests.web.pages.conftest import Visitor

HOOK = "https://hooks.example/T0/s3cret"


def test_target_is_added_shown_without_its_secret_and_removed(visitor: Visitor, store: Store) -> None:
    assert "There are no targets yet." in visitor.see("/targets")
    answer = visitor.send("/targets", page="/targets", name="hook", kind="webhook", addresses=HOOK)
    assert "added target hook" in answer.text
    for page in ("/targets", "/targets/hook"):
        assert "s3cret" not in visitor.see(page)
    assert "hooks.example" in visitor.see("/targets")
    visitor.send("/targets/hook", page="/targets/hook", addresses="***", batch_minutes="60", batch_items="5")
    with store.reading() as connection:
        target = get_target(connection, "hook")
    assert (target.config, target.batch_minutes, target.batch_items) == ({"url": HOOK}, 60.0, 5)
    assert "removed target hook" in visitor.send("/targets/hook/remove", page="/targets/hook").text
    assert visitor.client.get("/targets/hook").status_code == 404


def test_target_that_cannot_work_is_refused_and_what_was_typed_is_kept(visitor: Visitor) -> None:
    answer = visitor.send("/targets", page="/targets", name="ann", kind="email", addresses="ann at example")
    assert answer.status_code == 400
    assert "ann at example</textarea>" in answer.text
    two = visitor.send("/targets", page="/targets", name="two", kind="webhook", addresses=f"{HOOK}\n{HOOK}")
    assert "a webhook has one address" in two.text


def test_preview_of_a_target_shows_its_own_words_on_a_real_item_and_saves_nothing(
    visitor: Visitor, store: Store
) -> None:
    with store.writing() as connection:
        store_items(connection, Item("1", url="https://one.example/1", title="One"))
    visitor.send("/targets", page="/targets", name="team", kind="email", addresses="ann@example.org")
    fields = {"addresses": "ann@example.org", "title": "New: {{ title }}", "body": "{{ nothing"}
    refused = visitor.send("/targets/team/preview", page="/targets/team", **fields)
    assert refused.status_code == 400
    fields["body"] = "Read {{ item.url }} <script>alert(1)</script>"
    shown = visitor.send("/targets/team/preview", page="/targets/team", **fields).text
    assert "<bdi>New: " in shown
    assert "<script>alert(1)" not in shown
    with store.reading() as connection:
        assert get_target(connection, "team").config == {"recipients": ["ann@example.org"]}


def test_message_that_failed_says_why_and_is_sent_again(visitor: Visitor, store: Store) -> None:
    visitor.send("/targets", page="/targets", name="hook", kind="webhook", addresses=HOOK)
    assert "on its way to hook" in visitor.send("/targets/hook/test", page="/targets/hook").text
    with store.writing() as connection:
        put_in_outbox(
            connection, [NewDelivery("hook", "k", "<b>Flood</b>", "It rises.", None, {})], "item", NOON
        )
        connection.execute(
            deliveries.update().values(status="failed", error_message="500 <i>", due_at=None, ended_at=NOON)
        )
    page = visitor.see("/targets/hook")
    assert "&lt;b&gt;Flood" in page
    assert "500 &lt;i&gt;" in page
    again = visitor.send("/deliveries/2/retry", page="/targets/hook", back="/targets/hook")
    assert "sent again" in html.unescape(again.text)
    with store.reading() as connection:
        assert [each.status for each in list_deliveries(connection)] == ["pending", "failed"]
