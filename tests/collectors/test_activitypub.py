"""Outboxes of the Fediverse: from the actor or the outbox, page by page to what is known, and what is refused."""

from typing import Any

from headwater.errors import FailureKind
from tests.collectors.visits import Visits, told
from tests.fake_services import PAGE, as_json, query_of
from tests.origin import Answer, Origin, Received

CONTEXT = "https://www.w3.org/ns/activitystreams"
PUBLIC = f"{CONTEXT}#Public"


class Server:
    """An actor and the outbox, after ActivityPub 5.1: an ordered collection in pages, the newest first."""

    def __init__(self, origin: Origin, per_page: int = 10) -> None:
        self.origin, self.per_page = origin, per_page
        self.notes: list[int] = []
        self.more: list[dict[str, Any]] = []
        self.actor = origin.route("/users/ann", self._actor)
        self.outbox = origin.route("/users/ann/outbox", self._outbox)

    def _actor(self, request: Received) -> Answer:
        if "activity+json" not in request.headers["accept"]:
            return Answer(PAGE, content_type="text/html")
        return as_json(
            {
                "@context": [CONTEXT],
                "id": self.actor,
                "type": "Person",
                "name": "Ann",
                "summary": "<p>Trees</p>",
                "url": self.origin.url("/@ann"),
                "outbox": self.outbox,
            }
        )

    def _outbox(self, request: Received) -> Answer:
        query = query_of(request)
        if "page" not in query:
            return as_json(
                {
                    "@context": CONTEXT,
                    "id": self.outbox,
                    "type": "OrderedCollection",
                    "first": f"{self.outbox}?page=true",
                }
            )
        below = int(query.get("max_id", 10**9))
        notes = [number for number in sorted(self.notes, reverse=True) if number < below][: self.per_page]
        page = {
            "@context": CONTEXT,
            "type": "OrderedCollectionPage",
            "partOf": self.outbox,
            "orderedItems": [self._note(number) for number in notes] + self.more,
        }
        if notes:
            page["next"] = f"{self.outbox}?max_id={notes[-1]}&page=true"
        return as_json(page)

    def _note(self, number: int) -> dict[str, Any]:
        note = {
            "id": f"{self.actor}/statuses/{number}",
            "type": "Note",
            "published": "2026-11-01T10:00:00Z",
            "attributedTo": self.actor,
            "to": [PUBLIC],
            "content": f"<p>Note {number}</p>",
        }
        return {"id": f"{note['id']}/activity", "type": "Create", "to": [PUBLIC], "object": note}


async def test_outbox_is_read_from_the_actor_until_something_is_known(origin: Origin) -> None:
    server = Server(origin)
    server.notes = list(range(25))
    async with Visits(origin, "activitypub", server.actor) as runs:
        result = await runs.visit()
        assert (len(result.items), result.items[0].title) == (25, "Note 24")
        assert (result.metadata.title, result.metadata.site_url) == ("Ann", origin.url("/@ann"))
        assert await runs.cost() == (0, 3)  # the actor, the outbox, its first page
        server.notes += [25, 26]
        assert await runs.cost() == (2, 3)
        server.notes += range(27, 40)
        assert await runs.cost() == (13, 4)


async def test_outbox_itself_may_be_the_address_and_limits_are_kept(origin: Origin) -> None:
    server = Server(origin)
    server.notes = list(range(100))
    async with Visits(origin, "activitypub", server.outbox, {"max_pages": 2}) as runs:
        assert await runs.cost() == (20, 3)
    async with Visits(origin, "activitypub", server.outbox, {"limit": 15, "max_pages": 50}) as runs:
        assert await runs.cost() == (15, 3)


async def test_what_is_not_wanted_is_no_alarm(origin: Origin) -> None:
    server = Server(origin)
    server.notes = [1]
    server.more = [{"type": "Announce", "id": "b", "object": "https://other.example/1", "to": [PUBLIC]}]
    async with Visits(origin, "activitypub", server.outbox) as runs:
        assert await runs.cost() == (1, 3)
        server.notes = []
        assert (await runs.visit()).left_out_count == 1
        server.more = []
        assert told(await runs.failure())[0] is FailureKind.CHANGED_STRUCTURE


async def test_boosts_are_taken_when_they_are_wanted(origin: Origin) -> None:
    server = Server(origin)
    server.more = [{"type": "Announce", "id": "b", "object": "https://other.example/1", "to": [PUBLIC]}]
    async with Visits(origin, "activitypub", server.outbox, {"boosts": True}) as runs:
        assert [item.url for item in (await runs.visit()).items] == ["https://other.example/1"]


async def test_page_or_other_json_instead_is_told(origin: Origin) -> None:
    url = origin.route("/x", body=PAGE, content_type="text/html")
    async with Visits(origin, "activitypub", url) as runs:
        assert "a web page where JSON was expected" in str(await runs.failure())
        origin.route("/x", as_json({"type": "Note"}))
        assert told(await runs.failure())[0] is FailureKind.CHANGED_STRUCTURE
        origin.route("/x", as_json({"@context": CONTEXT, "type": "Person", "id": url}))
        assert "without outbox" in str(await runs.failure())
        origin.route("/x", as_json({"error": "signed requests only"}, status=401))
        assert told(await runs.failure()) == (FailureKind.UNAUTHORIZED, 401)
        origin.route("/x", status=429, headers={"Retry-After": "120"})
        error = await runs.failure()
    assert (told(error)[0], error.retry_after_seconds) == (FailureKind.RATE_LIMITED, 120)


async def test_pages_in_a_circle_come_to_an_end(origin: Origin) -> None:
    server = Server(origin)
    page = {"type": "OrderedCollectionPage", "orderedItems": [server._note(1)], "next": server.outbox}
    origin.route("/users/ann/outbox", as_json(page))
    async with Visits(origin, "activitypub", server.outbox, {"max_pages": 50}) as runs:
        assert await runs.cost() == (1, 2)


async def test_credentials_stay_with_their_origin(origin: Origin) -> None:
    with Origin(host="127.0.0.2") as other:
        elsewhere = other.route("/outbox", as_json({"type": "OrderedCollection", "orderedItems": []}))
        url = origin.route("/users/ben", as_json({"type": "Person", "id": "x", "outbox": elsewhere}))
        runs = Visits(origin, "activitypub", url, {"bearer_token": "s3cr3t", "may_be_empty": True})
        runs.allow("127.0.0.2")
        async with runs:
            await runs.visit()
        assert "authorization" not in other.requests[-1].headers
        assert origin.requests[-1].headers["authorization"] == "Bearer s3cr3t"
