"""The gallery in the browser."""

import html

from headwater.model import Item
from headwater.store.core.database import Store
from headwater.store.pipelines.starting import RunQuery, list_runs
from headwater.store.publishing.digests import get_digest
from headwater.store.reading.outlets import get_outlet
from tests.publish.test_outlets import store_items
from tests.web.pages.conftest import Visitor


def test_entry_is_used_with_one_field_and_works_on_the_items_that_are_there(
    visitor: Visitor, store: Store
) -> None:
    with store.writing() as connection:
        store_items(connection, Item("1", url="https://one.example/1", title="One"), folder="News")
    answer = visitor.send(
        "/pipelines/gallery/translated-feed", page="/pipelines", language="zh", folder="News"
    )
    assert (
        "“Translated feed” is ready" in html.unescape(answer.text)
        or "Translated feed is ready" in answer.text
    )
    with store.reading() as connection:
        assert get_outlet(connection, "translated-feed").title == "Translated feed"
        runs = list_runs(connection, RunQuery(), limit=100)
    assert runs
    assert {run.template_name for run in runs} == {"translated-feed"}


def test_daily_digest_in_chinese_of_what_matters_needs_no_other_page(visitor: Visitor, store: Store) -> None:
    with store.writing() as connection:
        store_items(connection, Item("1", url="https://one.example/1", title="One"), folder="News")
    fields = {"email": "ann@example.org", "folder": "News", "language": "zh", "interests": "rivers"}
    page = visitor.send(
        "/pipelines/gallery/daily-digest", page="/pipelines", time="07:30", zone="Asia/Shanghai", **fields
    ).text
    assert "HEADWATER_SMTP_HOST" in page, "what is missing is said"
    assert "OPENAI_BASE_URL" in page
    with store.reading() as connection:
        digest = get_digest(connection, "daily-digest")
    assert (digest.title, digest.when, digest.selection.min_score) == ("每日简报", "processed", 7.0)
    assert digest.config["languages"] == ["zh"]
    assert "no pipeline makes" not in page, "it brought its own"


def test_form_starts_with_the_time_zone_and_language_of_the_visitor(visitor: Visitor) -> None:
    visitor.client.cookies.set("headwater_zone", "Asia/Shanghai")
    page = visitor.see("/pipelines?language=zh")
    assert 'name="zone" value="Asia/Shanghai"' in page
    assert 'name="language" value="zh" required' in page, "a feed is translated into it"
    assert 'name="language" value=""' in page, "a digest only if that is wanted"
    assert 'name="zone" value="Asia/Shanghai"' in visitor.see("/digests")
    assert 'name="zone" value="Asia/Shanghai"' in visitor.see("/alerts")


def test_entry_that_lacks_a_field_says_so_beside_it_and_keeps_what_was_typed(visitor: Visitor) -> None:
    answer = visitor.send("/pipelines/gallery/page-watch", page="/pipelines", url="https://a.example/<b>")
    assert answer.status_code == 400
    assert "needs the field webhook" in html.unescape(answer.text)
    assert "https://a.example/&lt;b&gt;" in answer.text
