"""The starter catalogue over the API."""

from tests.web.api.conftest import MakeCaller


def test_catalogue_lists_packs_and_subscribes_to_chosen_feeds(caller: MakeCaller) -> None:
    person = caller("admin")
    packs = person.get("/api/catalogue").json()["packs"]
    assert sum(len(pack["feeds"]) for pack in packs) >= 150
    science = next(pack for pack in packs if pack["key"] == "science")
    chosen = [feed["url"] for feed in science["feeds"][:2]]
    report = person.post("/api/catalogue/science", json={"folder": "Space", "urls": chosen}).json()
    assert (report["added"], [entry["url"] for entry in report["entries"]]) == (2, chosen)
    assert {entry["folder"] for entry in report["entries"]} == {"Space"}
    assert person.post("/api/catalogue/nothing", json={}).status_code == 404
