"""Errors of the API as Problem Details (RFC 9457): one shape for all of them, and nothing of our insides in it."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, ClassVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.types import Scope

from headwater.collectors.validation_errors import describe_mistake
from headwater.errors import (
    ChangedError,
    ConflictError,
    HeadwaterError,
    InputError,
    NotFoundError,
    StoreError,
    Text,
    VisitError,
)
from headwater.language import preferred_language

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
API_ROOT = "/api"
FOR_PROGRAMS = ("/healthz", "/readyz", "/metrics")  # which no person looks at, either
RETRY_SECONDS = 5


class Problem(BaseModel):
    """Why a request was not answered as wished."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra={
            "example": {
                "type": "about:blank",
                "title": "Not Found",
                "status": 404,
                "detail": "there is no source 7",
                "instance": "/api/feeds/7/refresh",
            }
        }
    )

    type: str = Field(
        default="about:blank", description="What kind of problem; about:blank: the status says."
    )
    title: str = Field(description="The status in words.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field(description="What is wrong and the way out, in the language asked for.")
    instance: str = Field(description="The path that was asked for.")
    errors: list[dict[str, str]] | None = Field(
        default=None, description="What is wrong with which part of the request: `where` and `problem`."
    )


class Refusal(Exception):  # noqa: N818 - it is an answer, not an accident
    """An answer that is a problem, raised from anywhere under the API."""

    def __init__(self, status: int, detail: Text, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, detail)
        self.status = status
        self.detail = detail
        self.headers = headers


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For a route's `responses`: that it may answer these statuses with a problem, and 401, 403 and 422 too."""
    schema = Problem.model_json_schema()
    return {
        status: {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in sorted({401, 403, 422, 429, *statuses})
    }


ShowProblem = Callable[[Request, int, Text], Awaitable[Response]]


def answer_with_problems(app: FastAPI, safe_headers: Mapping[str, str], show: ShowProblem) -> None:
    """Let every error under the API be a problem; elsewhere it is a page, made by `show`."""

    async def answer(
        request: Request, status: int, detail: Text, headers: Mapping[str, str] | None = None
    ) -> Response:
        if _is_api(request):
            return _problem(request, status, detail, headers)
        response = await show(request, status, detail)
        response.headers.update(headers or {})
        return response

    @app.exception_handler(Refusal)
    async def refused(request: Request, error: Refusal) -> Response:
        return await answer(request, error.status, error.detail, error.headers)

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        """What the framework refuses: no such path, no such method, bytes that are not text."""
        if error.status_code == 400 and _is_api(request):  # with any other body that is wrong it says 422
            return _problem(request, 422, Text("the body cannot be read; it has to be JSON in UTF-8"))
        return await answer(request, error.status_code, _framework_text(request, error), error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        found = [(".".join(map(str, each["loc"])), describe_mistake(each)) for each in error.errors()]
        where, problem = found[0] if found else ("", Text(""))
        detail = Text("{where} is wrong: {problem}", where=where, problem=problem)
        if not _is_api(request):
            return await show(request, 422, detail)
        language = preferred_language(request.headers.get("accept-language", ""))
        errors = [{"where": where, "problem": problem.render(language)} for where, problem in found]
        return _problem(request, 422, detail, errors=errors)

    @app.exception_handler(HeadwaterError)
    async def ours(request: Request, error: HeadwaterError) -> Response:
        status = status_of(error)
        if status < 500:
            return await answer(request, status, Text(error.template, **error.values))
        log.error("%s %s: %s", request.method, request.url.path, error)
        if status == 503:
            detail = Text("the database is temporarily unavailable; try again in a few seconds")
            # Making a page takes the database; this has to do without.
            return _problem(request, status, detail, {"Retry-After": str(RETRY_SECONDS)})
        return await answer(request, status, _our_fault())

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        """An error of our own passes by the middleware; the server logs it after this answer."""
        if _is_api(request):
            return _problem(request, 500, _our_fault(), safe_headers)
        return PlainTextResponse("Internal Server Error", status_code=500, headers=dict(safe_headers))


def problem_answer(scope: Scope, status: int, detail: Text) -> Response:
    """A problem for a request that goes no further."""
    return _problem(Request(scope), status, detail)


def status_of(error: HeadwaterError) -> int:
    """The HTTP status that an error means."""
    match error:
        case NotFoundError():
            return 404
        case ConflictError():
            return 409
        case ChangedError():
            return 412
        case InputError():
            return 400
        case VisitError():
            return 422  # what was asked for names something that cannot be collected
        case StoreError(passing=True):
            return 503
        case _:
            return 500


def _our_fault() -> Text:
    return Text("internal error; the log of Headwater has the details")


def _framework_text(request: Request, error: HTTPException) -> Text:
    match error.status_code:
        case 404:
            return Text("there is nothing at {path}", path=request.url.path)
        case 405:
            return Text("{method} is not possible at {path}", method=request.method, path=request.url.path)
        case _:
            return Text("{problem}", problem=error.detail)


def _is_api(request: Request) -> bool:
    path = request.url.path
    return path == API_ROOT or path.startswith(f"{API_ROOT}/") or path in FOR_PROGRAMS


def _problem(
    request: Request,
    status: int,
    detail: Text,
    headers: Mapping[str, str] | None = None,
    errors: list[dict[str, str]] | None = None,
) -> JSONResponse:
    language = preferred_language(request.headers.get("accept-language", ""))
    problem = Problem(
        title=HTTPStatus(status).phrase,
        status=status,
        detail=HeadwaterError(detail.template, **detail.values).render(language),
        instance=request.url.path,
        errors=errors,
    )
    return JSONResponse(
        problem.model_dump(exclude_none=True),
        status_code=status,
        media_type=MEDIA_TYPE,
        headers={**(headers or {}), "Content-Language": language},
    )
