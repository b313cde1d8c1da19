"""The API keeps what its description promises, whatever it is asked."""

import re
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Self

import hypothesis
import pytest
import schemathesis
from hypothesis import strategies
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from headwater.config import Settings
from headwater.errors import FailureKind, FetchError
from headwater.model import Item
from headwater.store.core.database import Store
from headwater.store.core.tables import metadata
from headwater.store.people.keys import add_key
from headwater.store.pipelines.starting import start_runs
from headwater.store.pipelines.templates import NewTemplate, add_template
from headwater.store.reading.cursors import create_cursor
from headwater.store.reading.outlets import Outlet, add_outlet
from headwater.store.transfer.copying import continue_numbers
from headwater.web.app import create_app
from tests.clock import FakeClock
from tests.databases import empty_tables
from tests.publish.test_outlets import store_items
from tests.rows import fill
from tests.web.api.test_collector import add

pytestmark = pytest.mark.slow

# Not that everything outside the description is refused: unknown parameters do no harm.
PROMISES = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
EXAMPLES = 12  # of each operation and database: there are many operations


class NoWayOut:
    """A door to the network that is shut: no request reaches a server."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        pass

    async def get(self, request: Any) -> Any:
        raise FetchError(FailureKind.DNS, "{url} cannot be found", url=request.url)


@pytest.fixture
def described(store: Store, settings: Settings, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> Any:
    for module in ("sources", "subscriptions"):
        monkeypatch.setattr(f"headwater.web.api.{module}.make_fetcher", lambda settings: NoWayOut())
    for number in range(3):
        add(store, clock, f"https://{number}.example/")
    with store.writing() as connection:
        store_items(connection, *(Item(str(number), title=f"Item {number}") for number in range(3)))
        add_outlet(connection, Outlet("news", "News"), clock())
        create_cursor(connection, "mine", now=clock())
        step = {
            "step_type": "filter_content",
            "is_critical": True,
            "config": {},
            "timeout_seconds": None,
            "retries": 0,
        }
        template = add_template(connection, NewTemplate("one", (step,)), clock())
        start_runs(connection, template, [1, 2], clock())
    app = create_app(store, replace(settings, host="0.0.0.0"), clock=clock)
    return schemathesis.openapi.from_asgi("/api/openapi.json", app)


@pytest.fixture
def new_key(store: Store, clock: FakeClock) -> Callable[[], str]:
    """Makes a key for every request: one of them may revoke the one it comes with."""

    def make() -> str:
        with store.writing() as connection:
            return add_key(connection, name="me", scopes=["admin"], now=clock())[1]

    return make


# What the path of an operation names, with the numbers and names that the furnishing gives.
STORED: dict[str, Any] = {
    **{f"{name}_id": [1, 2, 3] for name in ("source", "feed", "item", "template", "run", "key", "session")},
    **{f"{name}_id": [1, 2, 3] for name in ("delivery", "issue", "subscription", "folder", "bookmark")},
    **{f"{name}_id": [1, 2, 3] for name in ("entry", "user", "app_password", "password", "invitation")},
    **{f"{name}_id": [1, 2, 3] for name in ("search", "rule")},
    "/api/digests/": ["daily-1", "daily-2", "daily-3"],
    "/api/targets/": ["team-1", "team-2", "team-3"],
    "/api/gallery/": ["full-text-feed", "archive"],
    "key": ["full-text-feed", "archive"],
    "/api/cursors/": ["mine-1", "mine-2", "mine-3"],
    "/api/outlets/": ["news-1", "news-2", "news-3"],
    "/api/types/": ["rss", "hackernews", "web.sitemap"],
}
# Columns whose values are words that Headwater knows.
WORDS = (
    "UPDATE collection_records SET status = 'new', error_kind = NULL",
    "UPDATE items SET status = 'ANALYZED'",
    "UPDATE pipeline_executions SET status = 'failed', trigger = 'manual', template_id = 1, current_step_index = 0",
    "UPDATE pipeline_steps SET step_index = 0, status = 'failed', step_type = 'filter_content', output_data = '{}'",
    "UPDATE pipeline_step_results SET step_index = 0, status = 'failed', output_data = '{}'",
    "UPDATE push_subscriptions SET state = 'active'",
    "UPDATE consumer_cursors SET name = 'mine-' || substr(name, 6, 1)",
    "UPDATE outlets SET name = 'news-' || substr(name, 6, 1)",
    "UPDATE digests SET name = 'daily-' || substr(name, 6, 1), config = '{}'",
    "UPDATE targets SET name = 'team-' || substr(name, 6, 1)",
    "UPDATE invitations SET role = 'reader'",
    "UPDATE folders SET parent_id = NULL",
    "UPDATE sessions SET signed_in_by = 'key', expires_at = created_at + 86400",
    "DELETE FROM settings",
)


def furnish(store: Store) -> None:
    """Rows in every table, whatever was there before."""
    if store.is_sqlite:
        with store.writing() as connection:
            for table in reversed(metadata.sorted_tables):
                if table.name != "item_clock":
                    connection.execute(table.delete())
    else:
        empty_tables(store)
    with store.writing() as connection:
        fill(connection, metadata)
        for statement in WORDS:
            connection.exec_driver_sql(statement)
        continue_numbers(connection, metadata.sorted_tables)


def at_what_is_stored(operation: Any) -> Any:
    """Good and bad requests about things that exist."""
    names = re.findall(r"\{(\w+)\}", operation.path)
    prefix = re.sub(r"\{.*", "", operation.path)
    choices = [strategies.sampled_from(STORED[prefix if name == "name" else name]) for name in names]

    def aim(parts: Any) -> Any:
        case, chosen = parts
        case.path_parameters = dict(zip(names, chosen, strict=True))
        return case

    anything = operation.as_strategy() | operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
    return strategies.tuples(anything, strategies.tuples(*choices)).map(aim)


def test_answers_about_stored_things_keep_the_description(
    described: Any, store: Store, new_key: Callable[[], str]
) -> None:
    found = []
    for result in described.get_all_operations():
        operation = result.ok()
        furnish(store)

        @hypothesis.given(case=at_what_is_stored(operation))
        @hypothesis.settings(
            max_examples=6,
            deadline=None,
            suppress_health_check=list(hypothesis.HealthCheck),
            phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
        )
        def check(case: schemathesis.Case[Any]) -> None:
            headers = {"Authorization": f"Bearer {new_key()}"}
            response = case.call_and_validate(headers=headers, checks=PROMISES)
            if case.method == "GET" and response.status_code == HTTPStatus.OK:
                found.append(case.operation.path)

        check()
    reading = {path for path in set(found) if "{" in path}
    assert len(reading) >= 10, "what exists is found"


def test_no_answer_breaks_the_description(described: Any, new_key: Callable[[], str]) -> None:
    tried = []
    for result in described.get_all_operations():
        operation = result.ok()
        tried.append(operation.path)

        anything = operation.as_strategy() | operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)

        @hypothesis.given(case=anything)
        @hypothesis.settings(
            max_examples=EXAMPLES,
            deadline=None,
            suppress_health_check=list(hypothesis.HealthCheck),
            phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],  # what fails needs no smaller form
        )
        def check(case: schemathesis.Case[Any]) -> None:
            case.call_and_validate(headers={"Authorization": f"Bearer {new_key()}"}, checks=PROMISES)

        check()
    assert len(tried) >= 50
