"""A browser on this machine, and forms as it sends them."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from headwater.config import Settings
from headwater.store.core.database import Store
from headwater.web.app import create_app
from tests.clock import FakeClock
from tests.web.pages.test_visitor import token_in


class Visitor:
    """A visitor who looks at pages and sends their forms."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def see(self, path: str, **headers: str) -> str:
        answer = self.client.get(path, headers={"Sec-Fetch-Site": "same-origin", **headers})
        assert answer.status_code == 200, answer.text
        return answer.text

    def send(self, path: str, *, page: str = "/settings", files: Any = None, **fields: Any) -> Response:
        """Send a form to `path`, with the token of a page that was seen before."""
        data = {"form_token": token_in(self.see(page)), **fields}
        answer: Response = self.client.post(path, data=data, files=files)
        return answer


@pytest.fixture
def visitor(store: Store, settings: Settings, clock: FakeClock) -> Iterator[Visitor]:
    app = create_app(store, settings, clock=clock)
    with TestClient(app, base_url="http://127.0.0.1:8626") as client:
        yield Visitor(client)


@pytest.fixture
def local(store: Store, settings: Settings, clock: FakeClock) -> Iterator[Visitor]:
    """A visitor of a Headwater that may visit this machine."""
    app = create_app(
        store, replace(settings, allow_hosts=("127.0.0.1",), host_spacing_seconds=0.0), clock=clock
    )
    with TestClient(app, base_url="http://127.0.0.1:8626") as client:
        yield Visitor(client)
