"""The API keeps what its description promises, whatever it is asked."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import hypothesis
import pytest
import schemathesis
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
from headwater.store.cursors import create_cursor
from headwater.store.database import Store
from headwater.store.keys import add_key
from headwater.store.outlets import Outlet, add_outlet
from headwater.store.starting import start_runs
from headwater.store.templates import NewTemplate, add_template
from headwater.web.app import create_app
from tests.clock import FakeClock
from tests.test_outlets import store_items
from tests.web.api.test_collector import add

# Not that everything outside the description is refused: parameters we do not know are nobody's harm.
PROMISES = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
EXAMPLES = 12  # of each operation and database: there are many operations


class NoWayOut:
    """A door to the network that is shut: whatever is asked for, nobody is reached."""

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
