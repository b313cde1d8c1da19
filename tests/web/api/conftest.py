"""An API with callers of every kind."""

from collections.abc import Callable, Iterator

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from headwater.config import Settings
from headwater.store.core.database import Store
from headwater.store.people.keys import add_key
from headwater.web.app import create_app
from tests.clock import FakeClock

ADDRESS = "http://127.0.0.1:8626"
MakeCaller = Callable[..., TestClient]


@pytest.fixture
def app(store: Store, settings: Settings, clock: FakeClock) -> FastAPI:
    return create_app(store, settings, clock=clock)


@pytest.fixture
def stranger(app: FastAPI) -> Iterator[TestClient]:
    """A client without a key."""
    with TestClient(app, base_url=ADDRESS, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def caller(app: FastAPI, store: Store, clock: FakeClock) -> MakeCaller:
    """Makes a client with a key of these scopes."""

    def make(*scopes: str) -> TestClient:
        with store.writing() as connection:
            _, secret = add_key(connection, name="-".join(scopes), scopes=scopes, now=clock())
        return TestClient(
            app,
            base_url=ADDRESS,
            raise_server_exceptions=False,
            headers={"Authorization": f"Bearer {secret}"},
        )

    return make
