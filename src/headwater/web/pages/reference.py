"""The API browser at `/api/docs`: every operation with its fields and examples, to read and to try. No library, no CDN.

It is made from /api/openapi.json, so it shows what this installation answers, and nothing else.
"""

import asyncio
from dataclasses import dataclass
from functools import cache
from typing import Any

import orjson
from fastapi import APIRouter, FastAPI
from fastapi.responses import HTMLResponse

from headwater.web.pages.frame import InUserPage

router = APIRouter()

Document = dict[str, Any]
METHODS = ("get", "post", "put", "patch", "delete")
DEEPEST = 4  # examples are made so far down


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter, or a field of a body."""

    name: str
    place: str  # path, query, header, body
    kind: str
    is_required: bool
    default: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Operation:
    key: str
    method: str
    path: str
    summary: str
    description: str
    fields: tuple[Field, ...]
    body: str | None  # an example of what is sent
    content_type: str | None
    answers: tuple[tuple[str, str], ...]
    answer: str | None  # an example of what is returned


@router.get("/api/docs")
async def api_page(page: InUserPage) -> HTMLResponse:
    groups = await asyncio.to_thread(read_operations, page.request.app)  # the first time takes seconds
    return await page.show("api.html", groups=groups, count=sum(map(len, groups.values())))


@cache
def read_operations(app: FastAPI) -> dict[str, list[Operation]]:
    """The operations of the application by their tag."""
    document = app.openapi()
    groups: dict[str, list[Operation]] = {}
    for path, methods in document["paths"].items():
        for method in METHODS:
            if method in methods:
                tag = (methods[method].get("tags") or ["other"])[0]
                groups.setdefault(tag, []).append(_read(document, path, method, methods[method]))
    return dict(sorted(groups.items()))


def _read(document: Document, path: str, method: str, written: Document) -> Operation:
    content = written.get("requestBody", {}).get("content", {})
    content_type = next(iter(content), None)
    schema = content[content_type].get("schema", {}) if content_type else {}
    is_json = bool(content_type) and "json" in str(content_type)
    fields = [_read_parameter(document, each) for each in written.get("parameters", ())]
    return Operation(
        key=written["operationId"],
        method=method.upper(),
        path=path,
        summary=written.get("summary", ""),
        description=written.get("description", ""),
        fields=(*fields, *_read_body(document, schema)),
        body=_as_text(example_of(document, schema)) if is_json else ("" if content_type else None),
        content_type=content_type,
        answers=tuple(
            (status, answer.get("description", "")) for status, answer in written["responses"].items()
        ),
        answer=_read_answer(document, written["responses"]),
    )


def _read_parameter(document: Document, written: Document) -> Field:
    schema = _resolve(document, written.get("schema", {}))
    return Field(
        written["name"],
        written["in"],
        _kind_of(schema),
        written.get("required", False),
        _default_of(schema),
        written.get("description") or schema.get("description", ""),
    )


def _read_body(document: Document, schema: Document) -> list[Field]:
    schema = _resolve(document, schema)
    required = schema.get("required", ())
    fields = []
    for name, written in schema.get("properties", {}).items():
        inner = _resolve(document, written)
        meaning = written.get("description") or inner.get("description", "")
        fields.append(Field(name, "body", _kind_of(inner), name in required, _default_of(inner), meaning))
    return fields


def _read_answer(document: Document, responses: Document) -> str | None:
    """An example of the answer of the first good status."""
    for status, answer in responses.items():
        schema = answer.get("content", {}).get("application/json", {}).get("schema")
        if status.startswith("2") and schema:
            return _as_text(example_of(document, schema))
    return None


def _resolve(document: Document, schema: Document) -> Document:
    name = schema.get("$ref", "").rpartition("/")[2]
    found: Document = document["components"]["schemas"][name] if name else schema
    return found


def _kind_of(schema: Document) -> str:
    if "enum" in schema:
        return " | ".join(str(each) for each in schema["enum"])
    if options := schema.get("anyOf"):
        return " | ".join(dict.fromkeys(_kind_of(each) for each in options))
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if schema.get("type") == "array":
        return f"[{_kind_of(schema.get('items', {}))}]"
    return str(schema.get("type", "any"))


def _default_of(schema: Document) -> str:
    return orjson.dumps(schema["default"]).decode() if schema.get("default") not in (None, "") else ""


def example_of(document: Document, schema: Document, depth: int = 0) -> Any:
    """A value that fits a schema: its own example, or one made of its parts."""
    schema = _resolve(document, schema)
    for key in ("example", "default", "const"):
        if key in schema:
            return schema[key]
    if schema.get("examples"):
        return schema["examples"][0]
    if "enum" in schema:
        return schema["enum"][0]
    if options := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
        return example_of(document, options[0], depth)
    if schema.get("type") == "object" and depth < DEEPEST:
        parts = schema.get("properties", {})
        return {name: example_of(document, part, depth + 1) for name, part in parts.items()}
    if schema.get("type") == "array":
        return [example_of(document, schema.get("items", {}), depth + 1)] if depth < DEEPEST else []
    return {"string": "…", "integer": 1, "number": 1.0, "boolean": True}.get(schema.get("type", ""))


def _as_text(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
