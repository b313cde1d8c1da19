"""What strangers may send: little, for it is read before anyone knows who they are."""

import time

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from headwater.web.limits import LARGEST_OF_STRANGERS_BYTES, STRANGERS
from headwater.web.pages.frame import MOST_FIELDS
from tests.web.api.conftest import ADDRESS, app

__all__ = ["app"]

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def stranger(app: FastAPI) -> TestClient:
    return TestClient(app, base_url=ADDRESS, raise_server_exceptions=False)


@pytest.mark.parametrize("path", STRANGERS)
def test_large_form_of_a_stranger_is_refused_unread(stranger: TestClient, path: str) -> None:
    most = LARGEST_OF_STRANGERS_BYTES
    assert stranger.post(path, content=b"%" * (most + 1), headers=FORM).status_code == 413
    began = time.thread_time()
    for body in (b"%" * most, b"&" * (most // 2), b"a=1&" * (most // 4), b"%41" * (most // 3)):
        assert stranger.post(path, content=body, headers=FORM).status_code not in (404, 413, 500)
    assert time.thread_time() - began < 2


def test_form_of_a_million_empty_fields_is_refused(stranger: TestClient) -> None:
    fields = b"name=x" + b"&" * MOST_FIELDS
    assert stranger.post("/sources/add", content=fields, headers=FORM).status_code == 403  # no form token
    answer = stranger.post("/sources/add", content=fields + b"&", headers=FORM)
    assert answer.status_code == 413
