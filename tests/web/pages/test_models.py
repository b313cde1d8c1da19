"""What models cost, by day: on the page."""

from headwater.store.core.database import Store
from headwater.store.pipelines.models import Limits, add_usage, reserve_request
from tests.clock import NOON
from tests.pipeline.making import make_template, step
from tests.web.pages.conftest import Visitor

NO_LIMIT = Limits()


def test_models_page_adds_up_a_day_and_names_who_asked(visitor: Visitor, store: Store) -> None:
    assert "No requests to models yet." in visitor.see("/models")
    make_template(store, step("summarize_content"), name="<b>Summaries</b>")
    with store.writing() as connection:
        for owner, cost in (("template:1", 0.25), ("digest:morning", 0.5), ("template:99", None)):
            assert reserve_request(connection, owner, "llama3", NOON, own=NO_LIMIT, all_=NO_LIMIT)
            add_usage(connection, owner, "llama3", NOON, (1_000, 50), cost)
        assert not reserve_request(
            connection, "template:1", "llama3", NOON, own=Limits(requests=1), all_=NO_LIMIT
        )
    page = visitor.see("/models")
    assert "&lt;b&gt;Summaries" in page
    assert 'href="/digests/morning"' in page
    assert "cost 0.75" in page
    assert "3 requests · 3150 tokens" in page
    assert "the budget was spent" in page
    assert ">99</a>" in page.replace("<bdi>", "").replace("</bdi>", ""), "a removed pipeline is its number"
