"""The gallery over the API."""

from headwater.store.core.database import Store
from tests.publish.test_outlets import store_items
from tests.web.api.conftest import MakeCaller


def test_entry_of_the_gallery_is_used_once_under_a_name(caller: MakeCaller, store: Store) -> None:
    with store.writing() as connection:
        store_items(connection, folder="News")
    admin, reader = caller("admin"), caller("read")
    listed = reader.get("/api/gallery").json()["entries"]
    assert listed[0]["fields"][0]["key"] == "folder"
    assert reader.post("/api/gallery/archive", json={}).status_code == 403
    made = admin.post("/api/gallery/archive", json={"values": {"folder": "News"}, "name": "kept"})
    assert made.json() == {
        "templates": ["kept"],
        "outlets": ["kept"],
        "digests": [],
        "targets": [],
        "sources": [],
        "run_count": 0,
    }
    [template] = reader.get("/api/templates").json()["templates"]
    assert template["attachments"] == [{"scope": "folder", "value": "News"}]
    assert admin.post("/api/gallery/archive", json={"name": "kept"}).status_code == 409
    assert admin.post("/api/gallery/best-of", json={}).status_code == 400
    assert admin.post("/api/gallery/nothing", json={}).status_code == 400
