"""Every error of the API has one shape, either language, and nothing of our insides."""

from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from headwater.errors import (
    ConflictError,
    FailureKind,
    FetchError,
    HeadwaterError,
    InputError,
    NotFoundError,
    StoreError,
)
from headwater.web.api.problems import status_of
from tests.web.api.conftest import MakeCaller


def passing() -> StoreError:
    error = StoreError("the database {url} failed: {problem}", url="u", problem="p")
    error.passing = True
    return error


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NotFoundError("x"), 404),
        (ConflictError("x"), 409),
        (InputError("x"), 400),
        (FetchError(FailureKind.DNS, "x"), 422),
        (StoreError("x"), 500),
        (passing(), 503),
        (HeadwaterError("x"), 500),
    ],
)
def test_an_errors_kind_decides_its_status(error: HeadwaterError, status: int) -> None:
    assert status_of(error) == status


def test_what_is_not_there_and_what_is_not_possible(caller: MakeCaller) -> None:
    admin = caller("admin")
    missing = admin.get("/api/nothing")
    assert (missing.status_code, missing.json()["detail"]) == (404, "there is nothing at /api/nothing")
    wrong = admin.delete("/api/collector/status")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET")
    assert wrong.json()["detail"] == "DELETE is not possible at /api/collector/status"
    for answer in (missing, wrong):
        assert answer.headers["content-type"] == "application/problem+json"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert admin.get("/nothing").headers["content-type"].startswith("text/html"), "pages are not the API"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/api/sources/99", None),
        ("GET", "/api/items/99", None),
        ("GET", "/api/cursors/none/items", None),
        ("GET", "/api/outlets/none", None),
        ("GET", "/api/templates/99", None),
        ("GET", "/api/runs/99", None),
        ("DELETE", "/api/keys/99", None),
        ("POST", "/api/feeds/99/refresh", None),
        ("POST", "/api/runs", {"template_id": 99, "item_ids": [1]}),
        (
            "POST",
            "/api/templates",
            {"name": "x", "steps": [{"step_type": "publish_content", "config": {"outlet": "none"}}]},
        ),
    ],
)
def test_problems_name_no_command_of_a_shell(caller: MakeCaller, method: str, path: str, body: Any) -> None:
    answer = caller("admin").request(method, path, json=body)
    assert answer.status_code in (400, 404), answer.text
    assert "headwater " not in answer.json()["detail"]


def test_a_wrong_request_is_told_part_by_part(caller: MakeCaller) -> None:
    answer = caller("admin").get("/api/collector/status", params={"limit": "many"})
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["where"] == "query.limit"
    assert answer.json()["detail"] == f"query.limit is wrong: {error['problem']}"
    assert error["problem"] == "it takes a whole number"
    for body, problem in (
        ({"action": "pause", "source_ids": "1"}, "it takes a list, in square brackets"),
        ({"source_ids": [1]}, "it is missing"),
        ({"action": "pause", "nonsense": 1}, "there is no field of this name"),
    ):
        wrong = caller("admin").post("/api/sources/bulk", json=body).json()
        assert problem in [each["problem"] for each in wrong["errors"]]


def test_a_body_that_is_no_text_is_wrong_like_any_other(caller: MakeCaller) -> None:
    answer = caller("admin").post(
        "/api/sources/bulk", content=b"\xff\xfe{", headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 422
    assert "UTF-8" in answer.json()["detail"]


def test_problems_speak_the_callers_language(stranger: TestClient) -> None:
    answer = stranger.get("/api/nothing", headers={"Accept-Language": "zh-CN"})
    assert (answer.json()["detail"], answer.headers["content-language"]) == ("/api/nothing 处没有内容", "zh")


@pytest.mark.parametrize(
    ("error", "status", "detail"),
    [
        (RuntimeError("hush"), 500, "internal error; the log of Headwater has the details"),
        (StoreError("hush {url}", url="secret"), 500, "internal error; the log of Headwater has the details"),
        (passing(), 503, "the database is temporarily unavailable; try again in a few seconds"),
    ],
)
def test_errors_of_our_own_tell_nothing(
    app: FastAPI, caller: MakeCaller, error: Exception, status: int, detail: str
) -> None:
    @app.get("/api/broken")
    async def broken() -> None:
        raise error

    answer = caller("admin").get("/api/broken")
    assert (answer.status_code, answer.json()["detail"]) == (status, detail)
    assert answer.headers["content-type"] == "application/problem+json"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "hush" not in answer.text
    assert ("retry-after" in answer.headers) == (status == 503)
