"""The API keeps what its description promises, whatever it is asked."""

from dataclasses import replace
from typing import Any

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
from headwater.store.database import Store
from headwater.store.keys import add_key
from headwater.web.app import create_app
from tests.clock import FakeClock
from tests.web.api.test_collector import add

# Not that everything outside the description is refused: parameters we do not know are nobody's harm.
PROMISES = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.fixture
def described(store: Store, settings: Settings, clock: FakeClock) -> Any:
    for number in range(3):
        add(store, clock, f"https://{number}.example/")
    app = create_app(store, replace(settings, host="0.0.0.0"), clock=clock)
    return schemathesis.openapi.from_asgi("/api/openapi.json", app)


@pytest.fixture
def key(store: Store, clock: FakeClock) -> str:
    with store.writing() as connection:
        return add_key(connection, name="me", scopes=["admin"], now=clock())[1]


def test_no_answer_breaks_the_description(described: Any, key: str) -> None:
    tried = []
    for result in described.get_all_operations():
        operation = result.ok()
        tried.append(operation.path)

        anything = operation.as_strategy() | operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)

        @hypothesis.given(case=anything)
        @hypothesis.settings(
            max_examples=40, deadline=None, suppress_health_check=list(hypothesis.HealthCheck)
        )
        def check(case: schemathesis.Case[Any]) -> None:
            case.call_and_validate(headers={"Authorization": f"Bearer {key}"}, checks=PROMISES)

        check()
    assert len(tried) >= 3
