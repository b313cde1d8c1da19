"""The server for agents, asked by the package's own client: in memory, over stdio and over HTTP."""

import socket
import sys
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.streamable_http import streamable_http_client

from headwater.config import Settings, load_settings
from headwater.mcp.server import make_server
from headwater.pipeline.templates import read_template
from headwater.store.collecting.sources import add_source
from headwater.store.core.database import Store
from headwater.store.people.entries import EntryFilter, list_places
from headwater.store.people.keys import add_key, revoke_key
from headwater.store.people.users import add_user
from headwater.store.pipelines.templates import add_template
from headwater.store.reading.cursors import create_cursor
from mcp import Client, StdioServerParameters
from tests.acceptance.test_push import free_port
from tests.clock import FakeClock
from tests.command import Headwater
from tests.web.api.test_reading import arrive

STEPS = [{"step_type": "filter_content"}]
CHANGES = {"mark_items", "add_source", "start_pipeline", "acknowledge_items"}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(directory=tmp_path, environment={})


@pytest.fixture
def source_id(store: Store, clock: FakeClock) -> int:
    with store.writing() as connection:
        source = add_source(connection, name="S", type="rss.feed", url="https://s.example/", now=clock())
    arrive(store, source.id, clock(), "apple", "pear")
    return source.id


def make_key(store: Store, clock: FakeClock, *scopes: str, user_id: int | None = None) -> str:
    with store.writing() as connection:
        return add_key(connection, name="agent", scopes=scopes, now=clock(), user_id=user_id)[1]


def is_open(port: int) -> bool:
    with socket.socket() as door:
        return door.connect_ex(("127.0.0.1", port)) == 0


def takes_endless_head(port: int) -> int:
    """How many bytes of a request's head the server takes before it ends the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as door:
        door.sendall(b"POST /mcp HTTP/1.1\r\nHost: x\r\nA: ")
        for megabytes in range(40):
            try:
                door.sendall(b"a" * 1_000_000)
            except OSError:
                return megabytes * 1_000_000
    return 40_000_000


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool returns; {"error": …} when it refuses."""
    result = await client.call_tool(tool, arguments)
    if result.is_error:
        return {"error": "".join(getattr(each, "text", "") for each in result.content)}
    assert result.structured_content is not None
    return dict(result.structured_content)


async def test_tools_search_read_explain_and_mark(
    store: Store, settings: Settings, clock: FakeClock, source_id: int
) -> None:
    server = make_server(store, settings, make_key(store, clock, "read", "edit"), clock)
    async with Client(server) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} >= CHANGES | {
            "search_items",
            "read_item",
        }
        (feed,) = (await call(client, "list_sources"))["feeds"]
        assert (feed["title"], feed["unread_count"]) == ("S", 2)
        (found,) = (await call(client, "search_items", query="pear"))["items"]
        assert found["title"] == "pear"
        item = await call(client, "read_item", item_id=found["id"])
        assert item["text"].strip() == "All about pear"
        assert (await call(client, "explain_plan", feed_id=feed["id"]))["source_id"] == source_id
        assert await call(client, "mark_items", item_ids=[found["id"], 99], is_read=True) == {
            "item_ids": [found["id"]]
        }
        unread = (await call(client, "search_items", unread_only=True))["items"]
        assert [each["title"] for each in unread] == ["apple"]
        assert (
            "lacks the scope" in (await call(client, "start_pipeline", pipeline_id=1, item_ids=[1]))["error"]
        )


async def test_read_key_changes_nothing_and_revoked_key_ends(
    store: Store, settings: Settings, clock: FakeClock, source_id: int
) -> None:
    secret = make_key(store, clock, "read")
    async with Client(make_server(store, settings, secret, clock)) as client:
        for tool, arguments in (
            ("mark_items", {"item_ids": [1], "is_read": True, "is_starred": True}),
            ("add_source", {"url": "https://other.example/"}),
            ("start_pipeline", {"pipeline_id": 1, "item_ids": [1]}),
            ("acknowledge_items", {"cursor": "mine", "position": 1}),
        ):
            assert "lacks the scope" in (await call(client, tool, **arguments))["error"], tool
        with store.writing() as connection:
            assert list_places(connection, 1, EntryFilter(is_read=True), limit=9) == []
            revoke_key(connection, 1, clock())
        assert "revoked" in (await call(client, "search_items"))["error"]


async def test_admin_key_starts_pipelines_and_follows_cursor(
    store: Store, settings: Settings, clock: FakeClock, source_id: int
) -> None:
    with store.writing() as connection:
        add_template(connection, read_template({"name": "T", "steps": STEPS}), clock())
        create_cursor(connection, "mine", now=clock())
    async with Client(make_server(store, settings, make_key(store, clock, "admin"), clock)) as client:
        (pipeline,) = (await call(client, "list_pipelines"))["pipelines"]
        assert (
            len((await call(client, "start_pipeline", pipeline_id=pipeline["id"], item_ids=[1]))["run_ids"])
            == 1
        )
        page = await call(client, "read_new_items", cursor="mine", limit=1)
        assert (len(page["items"]), page["is_last"]) == (1, False)
        await call(client, "acknowledge_items", cursor="mine", position=page["position"])
        assert (await call(client, "read_new_items", cursor="mine"))["items"] != page["items"]


async def test_key_of_a_reader_sees_own_subscriptions_only(
    store: Store, settings: Settings, clock: FakeClock, source_id: int
) -> None:
    with store.writing() as connection:
        bob = add_user(connection, name="bob", now=clock())
    secret = make_key(store, clock, "read", "edit", "refresh", user_id=bob.id)
    async with Client(make_server(store, settings, secret, clock)) as client:
        assert (await call(client, "search_items"))["items"] == []
        assert (await call(client, "list_sources"))["feeds"] == []
        for tool, arguments in (
            ("read_item", {"item_id": 1}),
            ("explain_plan", {"feed_id": 1}),
            ("list_pipelines", {}),
            ("read_new_items", {"cursor": "mine"}),
        ):
            assert "error" in await call(client, tool, **arguments), tool


async def test_stdio_and_http_answer_the_packages_client(
    store: Store, tmp_path: Path, clock: FakeClock, source_id: int
) -> None:
    secret = make_key(store, clock, "read")
    headwater = Headwater(tmp_path, store.url.render_as_string(hide_password=False))
    started = StdioServerParameters(
        command=sys.executable,
        args=["-m", "headwater", "mcp"],
        env=headwater.environment | {"MCP_API_KEY": secret},
    )
    async with Client(started) as client:
        assert len((await call(client, "search_items"))["items"]) == 2
    port = free_port()
    process = headwater.start("mcp", "--http", "--port", str(port))
    try:
        deadline = time.monotonic() + 60
        while not is_open(port):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        address = f"http://127.0.0.1:{port}/mcp"
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {secret}"}) as http,
            Client(streamable_http_client(address, http_client=http)) as client,
        ):
            assert len((await call(client, "search_items"))["items"]) == 2
        async with httpx2.AsyncClient() as stranger:
            for headers in ({}, {"Authorization": "Bearer hw_wrong"}):
                refused = await stranger.post(address, content=b"[" * 1_000_000, headers=headers)
                assert (refused.status_code, refused.headers["www-authenticate"][:6]) == (401, "Bearer")
        assert takes_endless_head(port) < 5_000_000
    finally:
        process.terminate()
        process.communicate(timeout=60)
