"""Preferences and saved searches: one person's own, on both databases."""

from starlette.testclient import TestClient

from tests.web.api.test_reading import MakeReader, app, reader

__all__ = ["app", "reader"]


def folder(client: TestClient, name: str) -> int:
    return int(client.post("/api/folders", json={"name": name}).json()["id"])


def test_preferences_have_defaults_and_keep_what_is_chosen(reader: MakeReader) -> None:
    li = reader("li")
    assert li.get("/api/preferences").json() == {
        "language": None,
        "theme": "auto",
        "density": "normal",
        "size": "normal",
        "layout": "list",
        "sort": "newest",
        "start_view": "unread",
        "unread_only": True,
        "mark_read_on_scroll": False,
        "same_story_once": True,
        "single_keys": True,
        "read_later_days": 7,
        "folder_views": {},
    }
    answer = li.patch("/api/preferences", json={"theme": "dark", "read_later_days": "never"})
    assert answer.status_code == 200
    again = li.get("/api/preferences").json()
    assert (again["theme"], again["read_later_days"], again["density"]) == ("dark", "never", "normal")
    assert li.patch("/api/preferences", json={"theme": None}).json()["theme"] == "auto"
    assert reader("ann").get("/api/preferences").json()["read_later_days"] == 7


def test_preferences_refuse_what_they_do_not_know(reader: MakeReader) -> None:
    li = reader("li")
    assert li.patch("/api/preferences", json={"theme": "pink"}).status_code == 422
    assert li.patch("/api/preferences", json={"colour": "pink"}).status_code == 422
    assert li.patch("/api/preferences", json={"folder_views": {"x": {"layout": "list"}}}).status_code == 400
    assert li.patch("/api/preferences", json={"folder_views": {"1": {"theme": "dark"}}}).status_code == 422


def test_preferences_written_by_another_version_are_left_alone(reader: MakeReader) -> None:
    li = reader("li")
    li.patch("/api/auth/me", json={"preferences": {"theme": "neon", "later": {"a": 1}}})
    assert li.get("/api/preferences").json()["theme"] == "auto"
    li.patch("/api/preferences", json={"density": "compact"})
    assert li.get("/api/auth/me").json()["preferences"] == {
        "theme": "neon",
        "later": {"a": 1},
        "density": "compact",
    }


def test_folder_has_its_own_view_until_it_is_deleted(reader: MakeReader) -> None:
    li, ann = reader("li"), reader("ann")
    news = folder(li, "News")
    views = {str(news): {"layout": "cards", "same_story_once": False}}
    assert li.patch("/api/preferences", json={"folder_views": views}).json()["folder_views"] == views
    changed = li.patch("/api/preferences", json={"folder_views": {str(news): {"layout": None}}}).json()
    assert changed["folder_views"] == {str(news): {"same_story_once": False}}
    assert ann.patch("/api/preferences", json={"folder_views": views}).status_code == 404
    li.delete(f"/api/folders/{news}")
    folder(li, "Other")  # its number may be the deleted one's
    assert li.get("/api/preferences").json()["folder_views"] == {}


def test_saved_search_is_kept_moved_and_deleted(reader: MakeReader) -> None:
    li = reader("li")
    first = li.post("/api/saved-searches", json={"name": "Bridges", "filter": {"search": "bridge"}})
    assert first.status_code == 201
    second = li.post("/api/saved-searches", json={"name": "Stars", "filter": {"is_starred": True}}).json()
    assert li.post("/api/saved-searches", json={"name": "Stars", "filter": {}}).status_code == 409
    li.patch(f"/api/saved-searches/{second['id']}", json={"position": 0, "name": "Starred"})
    found = li.get("/api/saved-searches").json()["saved_searches"]
    assert [(each["name"], each["filter"]) for each in found] == [
        ("Starred", {"is_starred": True}),
        ("Bridges", {"search": "bridge"}),
    ]
    assert li.delete(f"/api/saved-searches/{second['id']}").status_code == 204
    assert [each["name"] for each in li.get("/api/saved-searches").json()["saved_searches"]] == ["Bridges"]


def test_saved_search_is_of_one_person(reader: MakeReader) -> None:
    li, ann = reader("li"), reader("ann")
    news = folder(li, "News")
    made = li.post("/api/saved-searches", json={"name": "Mine", "filter": {"folder_id": news}}).json()
    assert ann.get("/api/saved-searches").json() == {"saved_searches": []}
    assert ann.patch(f"/api/saved-searches/{made['id']}", json={"name": "Yours"}).status_code == 404
    assert ann.delete(f"/api/saved-searches/{made['id']}").status_code == 404
    wanted = {"name": "Theirs", "filter": {"folder_id": news}}
    assert ann.post("/api/saved-searches", json=wanted).status_code == 404
