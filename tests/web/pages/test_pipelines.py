"""Pipelines in the browser: made from an example, refused with the mistake named, attached, run and run again."""

import html
import json

import pytest

from headwater.errors import InputError
from headwater.model import Item
from headwater.pipeline.examples import EXAMPLES, PLACEHOLDERS, Example
from headwater.pipeline.templates import read_template
from headwater.store.collecting.sources import get_source
from headwater.store.core.database import Store
from headwater.store.pipelines.starting import cancel, get_run
from headwater.store.pipelines.templates import get_template
from tests.clock import NOON
from tests.publish.test_outlets import store_items
from tests.web.pages.conftest import Visitor
from tests.web.pages.test_visitor import token_in

HOOK = [
    {
        "step_type": "publish_content",
        "config": {"target": "webhook", "url": "https://a.example/", "secret": "s"},
    }
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.key)
def test_every_example_can_be_saved_when_it_is_filled_in(example: Example) -> None:
    written = json.dumps(example.steps)
    if any(each in written for each in PLACEHOLDERS):
        with pytest.raises(InputError, match="put your own"):
            read_template({"name": example.name, "steps": list(example.steps)})
    for each in PLACEHOLDERS:
        written = written.replace(each, "mine.example")
    assert read_template({"name": example.name, "steps": json.loads(written)}).steps


def test_from_a_source_to_its_pipeline_and_a_first_run(visitor: Visitor, store: Store) -> None:
    with store.writing() as connection:
        store_items(connection, Item("a", title="one"))
    assert "/pipelines?source=1" in visitor.see("/sources/1")
    assert "/pipelines/new?example=webhook&amp;source=1" in visitor.see("/pipelines?source=1")
    editor = visitor.see("/pipelines/new?example=webhook&source=1")
    assert 'name="source" value="1" checked' in editor
    unfilled = json.dumps(EXAMPLES[0].steps)
    refused = visitor.send("/pipelines", name="Hook", steps=unfilled, source="1").text
    assert "put your own in the place of YOUR.HOST" in refused
    assert 'name="source" value="1" checked' in refused
    page = visitor.send("/pipelines", name="Hook", steps=json.dumps(HOOK), source="1").text
    assert "it runs for each new item from now on" in page
    assert "*** stands for something that is stored" in page
    with store.reading() as connection:
        assert get_source(connection, 1).pipeline_template_id == 1
    assert visitor.send("/pipelines/1/try").url.path == "/runs/1"
    assert visitor.send("/pipelines/1/try").url.path == "/runs/2", "as often as one likes"
    assert visitor.client.get("/pipelines?source=9").status_code == 404
    assert visitor.client.get("/pipelines?source=x").status_code == 422


def test_without_an_item_there_is_nothing_to_try_it_with(visitor: Visitor, store: Store) -> None:
    visitor.send("/pipelines", name="Hook", steps=json.dumps(HOOK))
    assert "no item yet" in visitor.send("/pipelines/1/try").text


def test_from_an_example_to_an_attached_template(visitor: Visitor, store: Store) -> None:
    with store.writing() as connection:
        store_items(connection, Item("a", title="one"))
    assert "Call a webhook" in visitor.see("/pipelines")
    editor = visitor.see("/pipelines/new?example=webhook")
    assert "https://YOUR.HOST/hook" in html.unescape(editor)
    assert "include_keywords" in editor  # what each step type takes
    page = visitor.send("/pipelines", name="Hook", steps=json.dumps(HOOK)).text
    assert "attach it to a source" in page
    assert "a.example" not in page  # a webhook's address may be its secret
    assert "attached: it runs" in visitor.send("/pipelines/1/attach", source_names="1", tag="urgent").text
    with store.reading() as connection:
        assert get_source(connection, 1).pipeline_template_id == 1
    assert "no source 9" in visitor.send("/pipelines/1/attach", source_names="9").text
    assert "there is no source x" in visitor.send("/pipelines/1/attach", source_names="x").text
    assert "nothing was chosen" in visitor.send("/pipelines/1/attach").text
    page = visitor.send("/pipelines/1/detach", attachment="source:1").text
    assert "detached" in page
    assert 'value="tag:urgent"' in page, "what was not ticked stays"
    visitor.send("/sources/1/pipeline", template="1")
    with store.reading() as connection:
        assert get_source(connection, 1).pipeline_template_id == 1
    assert 'name="detached" value="1"' in visitor.see("/sources/1")
    visitor.send("/sources/1/pipeline", detached="1")
    with store.reading() as connection:
        assert get_source(connection, 1).pipeline_template_id is None
    assert "removed template Hook" in visitor.send("/pipelines/1/remove").text
    assert visitor.client.get("/pipelines/1").status_code == 404


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ("{", "the steps are not JSON"),
        ("[]", "steps"),
        ('[{"step_type": "nothing"}]', "there is no step type nothing"),
        (
            '[{"step_type": "filter_content"}, {"step_type": "filter_content", "config": {"x": 1}}]',
            "config.x",
        ),
    ],
)
def test_a_mistake_is_named_and_what_was_typed_is_kept(visitor: Visitor, steps: str, problem: str) -> None:
    answer = visitor.send("/pipelines", name="typed", steps=steps)
    assert answer.status_code == 400
    page = html.unescape(answer.text)
    assert problem in page
    assert steps in page
    assert 'value="typed"' in page


def test_stars_stand_for_what_is_stored(visitor: Visitor, store: Store) -> None:
    visitor.send("/pipelines", name="Hook", steps=json.dumps(HOOK))
    shown = [{"step_type": "publish_content", "config": {"target": "webhook", "url": "***", "secret": "***"}}]
    first = {"step_type": "filter_content", "config": {}}
    assert visitor.send("/pipelines/1", name="Hook", steps=json.dumps([first, *shown])).status_code == 200
    with store.reading() as connection:
        assert get_template(connection, 1).steps[1]["config"] == HOOK[0]["config"]
    # Of two, it is unclear whose secret is meant.
    answer = visitor.send("/pipelines/1", name="Hook", steps=json.dumps([first, *shown, *shown]))
    assert answer.status_code == 400
    assert "step 3 (publish_content): config.url is ***" in html.unescape(answer.text)


def test_a_run_is_started_seen_cancelled_retried_and_run_again(visitor: Visitor, store: Store) -> None:
    with store.writing() as connection:
        store_items(connection, Item("a", title="<b>one</b>"))
    visitor.send("/pipelines", name="Hook", steps=json.dumps(HOOK))
    page = visitor.send("/items/1/run", template="1").text
    assert "started" in page
    assert "&lt;b&gt;one" in page
    assert "it has run for this item already" in visitor.send("/items/1/run", template="1").text
    again = visitor.send("/items/1/run", template="1", again="1").url.path
    assert again not in ("/items/1", "/runs/1")
    assert f'href="{again}"' in visitor.see("/items/1")
    assert "cancel it first" in visitor.send("/runs/1/rerun", step="1").text
    assert "cancelled" in visitor.send("/runs/1/cancel").text
    assert "it continues" in visitor.send("/runs/1/retry").text
    with store.writing() as connection:
        cancel(connection, 1, NOON)
    assert "it begins again at step 1" in visitor.send("/runs/1/rerun", step="1").text
    assert "no action explode" in visitor.send("/runs/1/explode").text
    with store.reading() as connection:
        assert get_run(connection, 1).status == "pending"


def test_runs_are_filtered_and_turned(visitor: Visitor, store: Store) -> None:
    with store.writing() as connection:
        store_items(connection, *(Item(f"{n}", title=f"number {n}") for n in range(60)))
    visitor.send("/pipelines", name="Hook", steps=json.dumps(HOOK))
    token = token_in(visitor.see("/settings"))
    for number in range(1, 53):
        visitor.client.post(
            f"/items/{number}/run", data={"form_token": token, "template": "1"}, follow_redirects=False
        )
    page = visitor.see("/runs?status=pending&template=1&source=1")
    assert page.count('<th scope="row" class="r">') == 50
    assert "before=3" in page
    assert visitor.see("/runs/live?before=3").count('<th scope="row" class="r">') == 2
    assert "There are no such runs" in visitor.see("/runs?status=failed")
    named = visitor.see("/runs?source=One")
    assert (
        named.count('<th scope="row" class="r">')
        == visitor.see("/runs?source=1").count('<th scope="row" class="r">')
        > 0
    )
    assert 'value="One"' in named
    unknown = visitor.see("/runs?source=Nosuch")
    assert "There is no source Nosuch." in unknown and '<th scope="row" class="r">' not in unknown
    assert visitor.client.get("/runs?status=odd").status_code == 422
