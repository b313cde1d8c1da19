"""Two edits of one thing: with If-Match the second is told, without it is done."""

from typing import Any

import pytest

from headwater.model import Item
from headwater.store.core.database import Store
from headwater.store.reading.outlets import Outlet, add_outlet
from tests.clock import NOON
from tests.publish.test_outlets import store_items
from tests.web.api.conftest import MakeCaller

STEPS = [{"step_type": "filter_content", "config": {}}]


@pytest.mark.parametrize(
    ("path", "method", "target", "first", "second"),
    [
        (
            "/api/templates/1",
            "PUT",
            "/api/templates/1",
            {"name": "Mine", "steps": STEPS},
            {"name": "Yours", "steps": STEPS},
        ),
        ("/api/outlets/all", "PATCH", "/api/outlets/all", {"title": "Mine"}, {"title": "Yours"}),
        ("/api/sources/1", "PATCH", "/api/sources/1", {"name": "Mine"}, {"name": "Yours"}),
        ("/api/types/rss", "PUT", "/api/types/rss/interval", {"minutes": 30}, {"minutes": 60}),
    ],
    ids=["template", "outlet", "source", "interval"],
)
def test_the_second_of_two_edits_is_told(
    caller: MakeCaller,
    store: Store,
    path: str,
    method: str,
    target: str,
    first: dict[str, Any],
    second: dict[str, Any],
) -> None:
    admin = caller("admin")
    with store.writing() as connection:
        store_items(connection, Item("1"))
        add_outlet(connection, Outlet("all", "All"), NOON)
    assert admin.post("/api/templates", json={"name": "Old", "steps": STEPS}).status_code == 201
    read = admin.get(path)
    tag = read.headers["etag"]
    assert admin.get(path, headers={"If-None-Match": tag}).status_code == 304

    mine = admin.request(method, target, json=first, headers={"If-Match": tag})
    assert mine.status_code == 200, mine.text
    yours = admin.request(method, target, json=second, headers={"If-Match": tag})
    assert yours.status_code == 412
    assert "read it again" in yours.json()["detail"]
    assert admin.get(path).headers["etag"].partition(".")[0] == mine.headers["etag"].partition(".")[0]

    again = admin.request(method, target, json=second, headers={"If-Match": mine.headers["etag"]})
    assert again.status_code == 200
    assert admin.request(method, target, json=first).status_code == 200, "who does not ask is not told"
    assert admin.request(method, target, json=second, headers={"If-Match": "*"}).status_code == 200
