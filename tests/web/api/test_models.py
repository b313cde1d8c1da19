"""What models cost, by day, over the API."""

from headwater.store.core.database import Store
from headwater.store.pipelines.models import Limits, add_usage, reserve_request
from tests.clock import NOON
from tests.web.api.conftest import MakeCaller


def test_usage_of_models_says_who_asked_and_what_it_cost(caller: MakeCaller, store: Store) -> None:
    no_limit = Limits()
    with store.writing() as connection:
        assert reserve_request(connection, "digest:morning", "llama3", NOON, own=no_limit, all_=no_limit)
        add_usage(connection, "digest:morning", "llama3", NOON, (1_000, 50), 0.5)
    [line] = caller("read").get("/api/model-usage").json()["usage"]
    assert (line["owner_name"], line["cost"], line["input_tokens"]) == ("morning", 0.5, 1_000)
    assert caller("read").get("/api/model-usage?days=0").status_code == 422
