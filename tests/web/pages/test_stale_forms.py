"""A form that shows what is no longer stored is told so, and overwrites nothing."""

import html
import re

import orjson

from headwater.model import Item
from headwater.sources.editing import Edit, edit_source
from headwater.sources.intervals import set_type_interval
from headwater.store.collecting.sources import get_source
from headwater.store.core.database import Store
from headwater.store.core.settings import interval_settings
from headwater.store.pipelines.templates import NewTemplate, add_template, change_template, get_template
from tests.clock import NOON
from tests.publish.test_outlets import store_items
from tests.web.pages.conftest import Visitor

STEPS = ({"step_type": "filter_content", "is_critical": True, "config": {}},)


def version_in(page: str, before: str) -> str:
    found = re.search(r'name="version" value="([^"]+)"', page[page.index(before) :])
    assert found
    return found[1]


def test_stale_pipeline_form_keeps_what_was_written_and_shows_what_is_stored(
    visitor: Visitor, store: Store
) -> None:
    with store.writing() as connection:
        template = add_template(connection, NewTemplate("Old", STEPS), NOON)
    path = f"/pipelines/{template.id}"
    seen = version_in(visitor.see(path), 'class="fields"')
    with store.writing() as connection:
        change_template(connection, template.id, NewTemplate("Theirs", STEPS), NOON)
    written = {"name": "Mine", "steps": orjson.dumps(STEPS).decode()}
    answer = visitor.send(path, version=seen, **written)
    assert answer.status_code == 412
    assert "Someone else has changed this pipeline" in answer.text
    assert 'value="Mine"' in answer.text and "Theirs" in answer.text
    with store.reading() as connection:
        assert get_template(connection, template.id).name == "Theirs"
    assert visitor.send(path, version=version_in(answer.text, 'class="fields"'), **written).status_code == 200
    with store.reading() as connection:
        assert get_template(connection, template.id).name == "Mine"


def test_stale_source_form_saves_nothing(visitor: Visitor, store: Store) -> None:
    with store.writing() as connection:
        source_id = store_items(connection, Item("1"))
    page = visitor.see(f"/sources/{source_id}")
    seen = version_in(page, f"/sources/{source_id}/edit")
    fields = {"name": "mine", "url": "https://one.example/", "config": "{}"}
    wrong = visitor.send(f"/sources/{source_id}/edit", version=seen, **{**fields, "config": "["})
    assert (wrong.status_code, version_in(wrong.text, "/edit")) == (400, seen)
    with store.writing() as connection:
        edit_source(connection, source_id, Edit(name="theirs"), NOON)
    answer = visitor.send(f"/sources/{source_id}/edit", version=seen, **fields)
    assert answer.status_code == 412
    assert "Someone else has changed this" in html.unescape(answer.text)
    with store.reading() as connection:
        assert get_source(connection, source_id).name == "theirs"
    fresh = version_in(answer.text, "/edit")
    assert visitor.send(f"/sources/{source_id}/edit", version=fresh, **fields).status_code == 200
    with store.reading() as connection:
        assert get_source(connection, source_id).name == "mine"


def test_stale_interval_form_saves_nothing(visitor: Visitor, store: Store) -> None:
    seen = version_in(visitor.see("/settings"), 'name="type" value="rss.feed"')
    with store.writing() as connection:
        set_type_interval(connection, "rss", 30, NOON)
    answer = visitor.send("/settings/intervals", type="rss.feed", minutes="60", version=seen)
    assert answer.status_code == 412
    assert "You wrote: 60" in answer.text
    with store.reading() as connection:
        assert interval_settings(connection) == {"rss.feed": 30}
