"""How pages look is chosen by a link and remembered; what is not on offer is not."""

import pytest

from headwater.model import Item
from headwater.store.core.database import Store
from tests.clock import NOON
from tests.publish.test_outlets import store_items
from tests.web.pages.conftest import Visitor


def test_a_theme_is_remembered(visitor: Visitor) -> None:
    assert 'data-theme="auto"' in visitor.see("/settings")
    assert 'data-theme="dark"' in visitor.see("/settings?theme=dark&density=compact")
    page = visitor.see("/settings")
    assert 'data-theme="dark"' in page and 'data-density="compact"' in page
    assert "theme=dark&amp;" not in page, "other links do not carry it on"


@pytest.mark.parametrize("wanted", ["", "pink", 'dark" onload="x'])
def test_a_theme_that_does_not_exist_is_ignored(visitor: Visitor, wanted: str) -> None:
    answer = visitor.client.get("/settings", params={"theme": wanted})
    assert 'data-theme="auto"' in answer.text
    assert "headwater_theme" not in answer.headers.get("set-cookie", "")


@pytest.mark.parametrize(
    ("zone", "told"), [("Asia/Shanghai", "Asia/Shanghai"), ("No/Where", "UTC"), ("../etc/passwd", "UTC")]
)
def test_the_browsers_time_zone_counts(visitor: Visitor, store: Store, zone: str, told: str) -> None:
    with store.writing() as connection:
        store_items(connection, Item("a", title="a", published_at=NOON))
    visitor.client.cookies.set("headwater_zone", zone)
    assert f"all days together, {told}" in visitor.see("/sources/1")
