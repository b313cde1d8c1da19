"""Two users, every route of the application, both directions: what is A's, B can neither see nor change.

The routes come from the router and the tables from the schema. A new route is asked, and a new table with a column
that refers to users is filled and watched, without being named here.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, iter_route_contexts
from sqlalchemy import Column, Connection, LargeBinary, Table, Text, insert, select
from starlette.testclient import TestClient

from headwater.config import Settings
from headwater.store.core.database import Store
from headwater.store.core.tables import metadata, users
from headwater.store.people.keys import READER_SCOPES, add_key
from headwater.store.people.sessions import NewSession, open_session
from headwater.store.people.users import add_user
from headwater.web.app import create_app
from headwater.web.pages.visitor import SESSION_COOKIE, Visitor
from tests.clock import NOON, FakeClock
from tests.rows import value_for

SITE = "http://127.0.0.1:8626"
REFUSED = frozenset({401, 403, 404, 405})
# What anyone may use, signed in or not. Nothing of it takes the number of something that a person owns.
FOR_ALL = frozenset(
    {
        *("/login", "/logout", "/signup", "/healthz", "/readyz", "/api/openapi.json"),
        *("/api/auth/login", "/api/auth/logout", "/api/auth/register"),
        *("/login/oidc", "/login/oidc/callback"),
        "/outlets/{name}.{format}",  # feeds that an admin publishes
        *("/manifest.webmanifest", "/service-worker.js"),  # by which a browser installs the reader
        # Where reader apps sign in; without an app password they are told nothing.
        *("/accounts/ClientLogin", "/api/greader.php/accounts/ClientLogin"),
        *("/api/greader.php", "/api/greader.php/"),
        *("/fever", "/fever/", "/api/fever.php", "/api/fever.php/"),
    }
)
LEAVING = frozenset({"/logout", "/api/auth/logout"})  # by which B signs B out: they are asked last


@dataclass(frozen=True, slots=True)
class Person:
    """A reader with rows in every table that refers to users. `number` is the key of all these rows."""

    id: int
    number: int
    secret: str  # stands in all texts of these rows
    key: str
    token: str


def owned_tables() -> list[Table]:
    return [
        table
        for table in metadata.sorted_tables
        if table is not users and any(key.column.table is users for key in table.foreign_keys)
    ]


def needed_tables() -> list[Table]:
    """Tables whose rows the rows of a person refer to, those first that others refer to."""
    needed: set[Table] = set()
    tables = set(owned_tables())
    while tables:
        tables = {key.column.table for table in tables for key in table.foreign_keys} - needed - {users}
        needed |= tables
    owned = set(owned_tables())
    return [table for table in metadata.sorted_tables if table in needed and table not in owned]


def owner_columns(table: Table) -> list[Column[Any]]:
    return [column for column in table.c if any(key.column.table is users for key in column.foreign_keys)]


def make_person(connection: Connection, name: str, number: int) -> Person:
    secret = f"secret-of-{name}"
    user = add_user(connection, name=f"{name}.{secret}", now=NOON, email=f"{secret}@example.org")
    for table in (*needed_tables(), *owned_tables()):
        values = {}
        for column in table.c:
            value = value_for(column, number)
            if any(key.column.table is users for key in column.foreign_keys):
                value = user.id
            elif isinstance(value, str) and not column.foreign_keys and not _is_json(value):
                value = _marked(column, value, secret)
            values[column.name] = value
        connection.execute(insert(table).values(values))
    _, key = add_key(connection, name="own", scopes=READER_SCOPES, now=NOON, user_id=user.id)
    token = open_session(connection, NewSession("account", user_id=user.id), NOON)
    return Person(user.id, number, secret, key, token)


def _is_json(value: str) -> bool:
    return value[:1] in "{["


def _marked(column: Column[Any], value: str, secret: str) -> str:
    """A text with the owner's secret in it, where the application takes any text."""
    free = {"name", "title", "note", "address", "user_agent", "excerpt", "text", "query", "url", "tag"}
    assert isinstance(column.type, Text) and not isinstance(column.type, LargeBinary)
    if column.name == "role":
        return "reader"
    if column.name == "signed_in_by":
        return "account"
    return f"{secret} {value}" if column.name in free else value


@pytest.fixture
def app(store: Store, settings: Settings, clock: FakeClock) -> FastAPI:
    return create_app(store, settings, clock=clock)


@pytest.fixture
def people(store: Store) -> tuple[Person, Person]:
    with store.writing() as connection:
        return make_person(connection, "ann", 7001), make_person(connection, "bob", 9001)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one route, with its whole path."""

    method: str
    path: str
    dependant: Dependant

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def endpoints_of(app: FastAPI) -> list[Endpoint]:
    found = [
        Endpoint(method, str(each.path), each.original_route.dependant)
        for each in iter_route_contexts(app.routes)
        if isinstance(each.original_route, APIRoute)
        for method in sorted(each.original_route.methods or ())
    ]
    return sorted(found, key=lambda each: each.path in LEAVING)


def address(endpoint: Endpoint, owner: Person) -> str:
    """The route's path with the owner's numbers in it."""
    return re.sub(r"\{[^}]+\}", str(owner.number), endpoint.path)


def body_of(schema: dict[str, Any], definitions: dict[str, Any]) -> Any:
    """A small value that a JSON schema allows: a body that is refused as invalid proves nothing."""
    if "$ref" in schema:
        return body_of(definitions[schema["$ref"].rsplit("/", 1)[1]], definitions)
    for name in ("example", "default", "const"):
        if name in schema:
            return schema[name]
    if "enum" in schema:
        return schema["enum"][0]
    for name in ("anyOf", "oneOf", "allOf"):
        if name in schema:
            return body_of(schema[name][0], definitions)
    match schema.get("type"):
        case "object":
            wanted = schema.get("required", [])
            return {name: body_of(schema["properties"][name], definitions) for name in wanted}
        case "array":
            return [body_of(schema["items"], definitions)] * schema.get("minItems", 1)
        case "integer" | "number":
            return max(schema.get("minimum", 1), 1)
        case "boolean":
            return True
        case _:
            return "x" * max(1, schema.get("minLength", 1))


def json_body(app: FastAPI, endpoint: Endpoint) -> Any:
    document = app.openapi()
    operation = document["paths"].get(endpoint.path, {}).get(endpoint.method.lower(), {})
    content = operation.get("requestBody", {}).get("content", {})
    if "application/json" not in content:
        return None
    return body_of(content["application/json"]["schema"], document["components"]["schemas"])


@pytest.fixture(params=["key", "session"])
def way_in(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def client_of(app: FastAPI, person: Person, way_in: str) -> TestClient:
    client = TestClient(app, base_url=SITE, raise_server_exceptions=False, follow_redirects=False)
    if way_in == "key":
        client.headers["Authorization"] = f"Bearer {person.key}"
    else:
        client.cookies.set(SESSION_COOKIE, person.token)
    return client


def ask_everything(
    app: FastAPI, asker: Person, owner: Person, way_in: str
) -> Iterator[tuple[Endpoint, int, str]]:
    client = client_of(app, asker, way_in)
    form = {"form_token": Visitor(asker.token, ()).form_token}
    for endpoint in endpoints_of(app):
        method, path = endpoint.method, address(endpoint, owner)
        body = json_body(app, endpoint)
        # Numbers in the query and in forms may name something of the owner's, too.
        query = {parameter.name: str(owner.number) for parameter in endpoint.dependant.query_params}
        numbers = {
            name: value for name, value in query.items() if name.endswith("_id") or name in ("id", "s", "i")
        }
        if method == "GET" or body is not None:
            answer = client.request(method, path, params=numbers, json=body)
        else:
            answer = client.request(method, path, params=numbers, data={**form, "id": str(owner.number)})
        if answer.status_code == 422 and "{" in endpoint.path:
            answer = client.request(method, path, json=body)
        yield endpoint, answer.status_code, answer.text + str(answer.headers)
        if way_in == "session":
            client.cookies.set(SESSION_COOKIE, asker.token)


def rows_of(connection: Connection, owner: Person) -> dict[str, set[Any]]:
    found = {
        table.name: {
            tuple(bytes(value) if isinstance(value, memoryview) else value for value in row)
            for column in owner_columns(table)
            for row in connection.execute(select(table).where(column == owner.id))
        }
        for table in owned_tables()
    }
    found["users"] = set(
        connection.execute(
            select(users.c.id, users.c.name, users.c.role, users.c.email, users.c.is_disabled).where(
                users.c.id == owner.id
            )
        ).all()
    )
    return found


@pytest.mark.parametrize("direction", ["first asks", "second asks"])
def test_every_route_hides_what_is_another_users(
    app: FastAPI, store: Store, people: tuple[Person, Person], way_in: str, direction: str
) -> None:
    owner, asker = people if direction == "second asks" else people[::-1]
    with store.reading() as connection:
        before = rows_of(connection, owner)
    assert all(before[table.name] for table in owned_tables()), "the owner has something in every table"
    leaks = []
    asked = 0
    for endpoint, status, told in ask_everything(app, asker, owner, way_in):
        asked += 1
        if owner.secret in told.replace(asker.secret, ""):
            leaks.append(f"{endpoint} shows the other user's texts ({status})")
        if status >= 500:
            leaks.append(f"{endpoint} fails ({status})")
        # A page sends visitors without a session to sign in.
        is_refused = status in REFUSED or (way_in == "key" and status == 303)
        if "{" in endpoint.path and endpoint.path not in FOR_ALL and not is_refused:
            leaks.append(f"{endpoint} answers {status}")
    with store.reading() as connection:
        after = rows_of(connection, owner)
    changed = [name for name in before if before[name] != after[name]]
    assert (leaks, changed) == ([], [])
    assert asked > 150


@pytest.mark.parametrize("way_in", ["key", "session"], indirect=True)
def test_reader_reaches_nothing_that_needs_an_admin(
    app: FastAPI, store: Store, people: tuple[Person, Person], way_in: str
) -> None:
    """What a reader can use is what is declared for every user: new routes need one of these dependencies."""
    _, asker = people
    reached = {
        str(endpoint)
        for endpoint, status, _ in ask_everything(app, asker, asker, way_in)
        if status not in REFUSED
        and status != 303
        and endpoint.path not in FOR_ALL
        and not _is_for_users(endpoint)
    }
    assert reached == set()


def _is_for_users(endpoint: Endpoint) -> bool:
    """Whether a route takes the user who asks, and so decides what is theirs."""
    names = {"find_caller", "current_user", "user_page", "user_action", "caller_with_all_rights"}
    waiting = [endpoint.dependant]
    while waiting:
        dependant = waiting.pop()
        if getattr(dependant.call, "__name__", "") in names:
            return True
        waiting.extend(dependant.dependencies)
    return False
