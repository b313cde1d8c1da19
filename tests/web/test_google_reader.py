"""The Google Reader API, by the requests that real apps send."""

import time
import tracemalloc
from dataclasses import replace
from urllib.parse import parse_qsl, quote, urlencode
from xml.etree import ElementTree

import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from headwater.config import Settings
from headwater.store.core.database import Store
from headwater.store.people.app_passwords import add_app_password
from headwater.store.people.folders import make_folder_path
from headwater.store.people.subscriptions import change_subscription, subscribe
from headwater.store.people.users import add_user
from headwater.web.app import create_app
from headwater.web.google_reader.names import long_id, read_item_id, read_seconds, read_stream
from headwater.web.google_reader.selecting import Parameters, _pairs
from tests.clock import FakeClock
from tests.origin import Origin
from tests.web.api.conftest import ADDRESS
from tests.web.api.test_reading import arrive, sources

__all__ = ["sources"]

READ = "user/-/state/com.google/read"
STARRED = "user/-/state/com.google/starred"
KEPT = "user/-/state/com.google/kept-unread"
ALL = "user/-/state/com.google/reading-list"
API = "/reader/api/0"


class App:
    """A reader app, signed in with an app password."""

    def __init__(self, app: FastAPI, name: str, password: str, prefix: str = "") -> None:
        self.client = TestClient(app, base_url=ADDRESS, raise_server_exceptions=False)
        self.prefix = prefix
        answer = self.client.post(f"{prefix}/accounts/ClientLogin", data={"Email": name, "Passwd": password})
        assert answer.status_code == 200, answer.text
        lines = dict(line.split("=", 1) for line in answer.text.splitlines())
        assert {"SID", "LSID", "Auth"} <= lines.keys()
        self.client.headers["Authorization"] = f"GoogleLogin auth={lines['Auth']}"

    def get(self, path: str) -> dict[str, object]:
        answer = self.client.get(f"{self.prefix}{API}/{path}")
        assert answer.status_code == 200, (path, answer.text)
        found: dict[str, object] = answer.json()
        return found

    def post(self, path: str, form: str) -> str:
        answer = self.client.post(
            f"{self.prefix}{API}/{path}",
            content=form,
            headers={"Content-Type": "application/x-www-form-urlencoded"},
        )
        assert answer.status_code == 200, (path, answer.text)
        return answer.text

    def ids(self, query: str) -> list[int]:
        return [int(each["id"]) for each in self.get(f"stream/items/ids?output=json&{query}")["itemRefs"]]  # type: ignore[attr-defined]

    def counts(self) -> dict[str, int]:
        found = self.get("unread-count?output=json")["unreadcounts"]
        return {each["id"]: each["count"] for each in found}  # type: ignore[attr-defined]


class Person:
    """A user with an app password, who reads three sources: two in folders, one in none."""

    def __init__(self, app: FastAPI, store: Store, clock: FakeClock, sources: list[int]) -> None:
        self.app = app
        with store.writing() as connection:
            self.id = add_user(connection, name="ann", now=clock()).id
            _, self.password = add_app_password(connection, user_id=self.id, name="phone", now=clock())
            self.feeds = [subscribe(connection, self.id, each, clock())[0].id for each in sources]
            for feed, path in zip(self.feeds, (["News"], ["News", "World"]), strict=False):
                folder = make_folder_path(connection, self.id, path)
                change_subscription(connection, self.id, feed, folder_id=folder)

    def app_at(self, prefix: str = "") -> App:
        return App(self.app, "ann", self.password, prefix)


@pytest.fixture
def app(store: Store, settings: Settings, clock: FakeClock) -> FastAPI:
    local = replace(settings, allow_hosts=("127.0.0.1",), host_spacing_seconds=0.0)
    return create_app(store, local, clock=clock)


@pytest.fixture
def person(app: FastAPI, store: Store, clock: FakeClock, sources: list[int]) -> Person:
    made = Person(app, store, clock, sources)
    arrive(store, sources[0], clock(), "a1", "a2", "a3")
    arrive(store, sources[1], clock(), "b1", "b2")
    arrive(store, sources[2], clock(), "c1")
    return made


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("78", 78),
        ("000000000000004e", 78),
        ("4e", 78),
        ("tag:google.com,2005:reader/item/000000000000004e", 78),
        ("tag:google.com,2005:reader/item/4e", 78),
        ("0000000000000078", 120),
        ("9223372036854775807", 2**63 - 1),
        ("-1", None),
        ("ffffffffffffffff", None),
        ("tag:google.com,2005:reader/item/", None),
        ("x", None),
        ("", None),
    ],
)
def test_item_names_in_all_spellings_mean_numbers(text: str, number: int | None) -> None:
    assert read_item_id(text) == number


def test_names_of_streams_and_times() -> None:
    assert read_item_id(long_id(78)) == 78
    assert read_stream("user/1234/label/A / B").name == "A / B"
    assert read_stream("user/1234/state/com.google/read").kind == "read"
    assert read_stream("").kind == read_stream(ALL).kind == "all"
    assert read_stream("feed/7").number == 7
    assert read_stream("feed/http://a.example/x").name == "http://a.example/x"
    assert read_stream("splice/x").kind == "none"
    times = {read_seconds(text) for text in ("1700000000", "1700000000000", "1700000000000000")}
    assert times | {read_seconds("1700000000000000000")} == {1_700_000_000.0}
    assert read_seconds("1700000000.25") == 1_700_000_000.25
    assert read_seconds("1700000000.") == 1_700_000_000.0
    assert read_seconds("0.0") is read_seconds(".5") is read_seconds("1.2.3") is read_seconds("-1") is None
    assert read_seconds("") is read_seconds("0") is read_seconds(None) is read_seconds("x") is None


def test_sign_in_refuses_wrong_password_and_stale_token(person: Person) -> None:
    stranger = TestClient(person.app, base_url=ADDRESS)
    for form in ({"Email": "ann", "Passwd": "x"}, {"Email": "bob", "Passwd": person.password}, {}):
        answer = stranger.post("/accounts/ClientLogin", data=form)
        assert (answer.status_code, "Error=BadAuthentication" in answer.text) == (401, True)
    assert stranger.get(
        "/accounts/ClientLogin", params={"Email": "ann", "Passwd": person.password}
    ).text.startswith("SID=")
    for header in ("", "GoogleLogin auth=ann/x", f"Bearer {person.password}", "GoogleLogin auth="):
        answer = stranger.get(f"{API}/user-info", headers={"Authorization": header})
        assert answer.status_code == 401
        assert answer.headers["Google-Bad-Token"] == answer.headers["X-Reader-Google-Bad-Token"] == "true"


def test_server_address_opened_in_a_browser_says_ok(app: FastAPI) -> None:
    stranger = TestClient(app, base_url=ADDRESS)
    for path in ("/api/greader.php", "/api/greader.php/"):
        assert (stranger.get(path).status_code, stranger.get(path).text) == (200, "OK")


def test_large_answers_are_compressed_for_apps_that_take_that(
    person: Person, store: Store, clock: FakeClock
) -> None:
    arrive(store, 3, clock(), *(f"item {number}" for number in range(40)))
    phone = person.app_at()
    for path in ("stream/items/ids?n=100", "stream/contents?n=100", f"stream/contents/{ALL}?n=100"):
        answer = phone.client.get(f"{API}/{path}", headers={"Accept-Encoding": "gzip"})
        assert answer.headers["content-encoding"] == "gzip" and "Accept-Encoding" in answer.headers["vary"]
        plain = phone.client.get(f"{API}/{path}", headers={"Accept-Encoding": "identity"})
        assert "content-encoding" not in plain.headers and plain.json() == answer.json()
    small = phone.client.get(f"{API}/user-info", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in small.headers


@pytest.mark.parametrize("prefix", ["", "/api/greader.php"])
def test_first_sync_shows_subscriptions_folders_counts_and_items(person: Person, prefix: str) -> None:
    """As FeedMe, Reeder and NewsFlash begin."""
    phone = person.app_at(prefix)
    assert phone.client.get(f"{prefix}{API}/token").text
    assert phone.get("user-info?output=json")["userName"] == "ann"
    listed = {each["title"]: each for each in phone.get("subscription/list?output=json")["subscriptions"]}  # type: ignore[attr-defined]
    assert listed["alpha"]["id"] == f"feed/{person.feeds[0]}"
    assert listed["alpha"]["categories"] == [{"id": "user/-/label/News", "label": "News", "type": "folder"}]
    assert listed["beta"]["categories"][0]["label"] == "News / World"
    assert listed["gamma"]["categories"] == []
    names = [each["id"] for each in phone.get("tag/list?output=json")["tags"]]  # type: ignore[attr-defined]
    assert names == [STARRED, "user/-/label/News", "user/-/label/News / World"]
    counts = phone.counts()
    assert (counts[ALL], counts["user/-/label/News"], counts[f"feed/{person.feeds[2]}"]) == (6, 3, 1)
    unread = phone.ids(f"s={ALL}&xt={READ}&n=10000")
    assert len(unread) == 6
    form = "&".join(f"i={quote(long_id(number))}" for number in unread)
    answer = phone.client.post(f"{prefix}{API}/stream/items/contents?output=json", content=form).json()
    assert [each["id"] for each in answer["items"]] == [long_id(number) for number in unread]
    first = next(each for each in answer["items"] if each["title"] == "a1")
    assert first["canonical"][0]["href"] == first["alternate"][0]["href"] == "https://items.example/a1"
    assert first["origin"]["streamId"] == f"feed/{person.feeds[0]}"
    assert first["summary"]["content"] == "<p>All about a1</p>"
    assert first["categories"] == [ALL, "user/-/label/News"]
    assert int(first["crawlTimeMsec"]) * 1000 == int(first["timestampUsec"])
    for path in ("preference/list", "preference/stream/list", "friend/list"):
        assert phone.get(path)


def test_edit_tag_takes_ids_in_all_spellings(person: Person) -> None:
    phone = person.app_at()
    numbers = sorted(phone.ids(f"s={ALL}&n=100"))
    spellings = (str(numbers[0]), f"{numbers[1]:016x}", long_id(numbers[2]), f"{numbers[3]:x}")
    form = "&".join(f"i={quote(each)}" for each in spellings)
    assert phone.post("edit-tag", f"{form}&a={quote(READ)}&T=token") == "OK"
    assert sorted(phone.ids(f"s={READ}&n=100")) == numbers[:4]
    # As newsboat, without encoding, and with both tags at once.
    assert phone.post("edit-tag", f"i={long_id(numbers[0])}&r={READ}&a={KEPT}&a={KEPT}&ac=edit") == "OK"
    assert sorted(phone.ids(f"s={READ}&n=100")) == numbers[1:4]
    assert phone.post("edit-tag", f"i={numbers[0]}&i={numbers[1]}&a=user/17/state/com.google/starred") == "OK"
    assert sorted(phone.ids(f"s={STARRED}")) == numbers[:2]
    assert phone.ids(f"s={STARRED}&xt={READ}") == [numbers[0]]
    assert phone.ids(f"s={ALL}&it={STARRED}&xt={READ}") == [numbers[0]]
    assert phone.post("edit-tag", f"i={numbers[0]}&r={STARRED}&i=nonsense&i=99999") == "OK"
    assert phone.ids(f"s={STARRED}") == [numbers[1]]
    assert phone.post("edit-tag", f"i={numbers[1]}&a=user/-/label/to%20do") == "OK"
    assert phone.ids("s=user/-/label/to do") == [numbers[1]]
    assert phone.post("rename-tag", "s=user/-/label/to do&dest=user/-/label/done") == "OK"
    assert phone.ids("s=user/-/label/done") == [numbers[1]]
    assert phone.client.get(f"{API}/stream/items/count?s=user/-/label/done").text == "1"
    assert phone.post("disable-tag", "t=done") == "OK"
    assert phone.ids("s=user/-/label/done") == []


def test_streams_page_by_page_in_both_orders(person: Person) -> None:
    """As RSS Guard and News+ do, with streams encoded and not."""
    phone = person.app_at()
    for path, query in (
        ("stream/contents", "n=2"),
        (f"stream/contents/{ALL}", "n=2&r=o"),
        (f"stream/contents/{quote(ALL, safe='')}", f"n=2&xt={READ}"),
    ):
        seen: list[str] = []
        more = ""
        while True:
            page = phone.get(f"{path}?output=json&{query}{more}")
            seen += [each["title"] for each in page["items"]]  # type: ignore[attr-defined]
            if "continuation" not in page:
                break
            more = f"&c={page['continuation']}"
        assert sorted(seen) == ["a1", "a2", "a3", "b1", "b2", "c1"]
        assert seen[0] == ("a1" if "r=o" in query else "a3")
    feed = phone.get(f"stream/contents/feed/{person.feeds[0]}")["items"]
    by_url = phone.get(f"stream/contents/{quote('feed/https://alpha.example/', safe='')}")["items"]
    plain = phone.get("stream/contents/feed/https://alpha.example/")["items"]
    assert feed == by_url == plain
    assert [each["title"] for each in feed] == ["a3", "a2", "a1"]  # type: ignore[attr-defined]
    label = phone.get(f"stream/contents/{quote('user/-/label/News')}")["items"]
    assert len(label) == 5  # type: ignore[arg-type]
    assert phone.ids("s=feed/99999") == phone.ids("s=user/-/state/com.google/broadcast") == []


def test_ot_and_nt_are_about_when_items_were_found(person: Person, store: Store, clock: FakeClock) -> None:
    phone = person.app_at()
    clock.advance(100)
    arrive(store, 3, clock(), "new")
    assert len(phone.ids(f"s={ALL}&ot={int(clock()) - 50}")) == 1
    assert len(phone.ids(f"s={ALL}&nt={int(clock()) - 50}&n=100")) == 6


def test_mark_all_as_read_up_to_time_leaves_later_items(
    person: Person, store: Store, clock: FakeClock
) -> None:
    phone = person.app_at()
    before = clock()
    clock.advance(100)
    arrive(store, 1, clock(), "late")
    # As newsboat, unencoded and without a time; then a label with nanoseconds; then everything up to a time.
    assert phone.post("mark-all-as-read", f"s=feed/{person.feeds[2]}&T=x") == "OK"
    assert phone.counts()[f"feed/{person.feeds[2]}"] == 0
    assert phone.post("mark-all-as-read", f"s=user/-/label/News&ts={int(before * 1e9) + 10**9}") == "OK"
    assert phone.counts()[ALL] == 1
    assert phone.post("mark-all-as-read", f"s={ALL}&ts={int(before * 1e6)}") == "OK"
    assert phone.counts()[ALL] == 1
    assert phone.post("mark-all-as-read", f"s={ALL}") == "OK"
    assert phone.counts()[ALL] == 0


def test_subscription_edit_quickadd_import_and_export(person: Person, origin: Origin) -> None:
    """As Liferea subscribes, moves and removes."""
    phone = person.app_at()
    origin.route("/feed", body='<rss version="2.0"><channel><title>Fresh</title></channel></rss>')
    answer = phone.client.post(f"{API}/subscription/quickadd", data={"quickadd": origin.url("/feed")}).json()
    assert (answer["numResults"], answer["streamName"]) == (1, "Fresh")
    stream = answer["streamId"]
    failed = phone.client.post(f"{API}/subscription/quickadd", data={"quickadd": origin.url("/none")}).json()
    assert failed["numResults"] == 0
    assert phone.post("subscription/edit", f"ac=edit&s={stream}&t=Mine&a=user/-/label/Tech") == "OK"
    listed = {each["id"]: each for each in phone.get("subscription/list")["subscriptions"]}  # type: ignore[attr-defined]
    assert (listed[stream]["title"], listed[stream]["categories"][0]["label"]) == ("Mine", "Tech")
    assert phone.post("subscription/edit", f"ac=edit&s={stream}&r=user/-/label/Tech") == "OK"
    opml = phone.client.get(f"{API}/subscription/export").content
    assert b"Mine" in opml
    form = f"ac=unsubscribe&s={stream}&s=feed/{person.feeds[2]}"
    assert phone.post("subscription/edit", form) == "OK"
    assert len(phone.get("subscription/list")["subscriptions"]) == 2  # type: ignore[arg-type]
    again = f"ac=subscribe&s=feed/{quote(origin.url('/feed'))}&t=Again&a=user/-/label/New"
    assert phone.post("subscription/edit", again) == "OK"
    imported = phone.client.post(
        f"{API}/subscription/import", content=opml, headers={"Content-Type": "text/xml"}
    )
    assert imported.text == "OK"
    assert len(phone.get("subscription/list")["subscriptions"]) == 4  # type: ignore[arg-type]


def test_atom_has_states_in_categories(person: Person) -> None:
    phone = person.app_at()
    number = phone.ids(f"s=feed/{person.feeds[0]}")[0]
    phone.post("edit-tag", f"i={number}&a={READ}&a={STARRED}")
    answer = phone.client.get(f"/reader/atom/feed%2F{person.feeds[0]}?n=2")
    space = {"a": "http://www.w3.org/2005/Atom", "gr": "http://www.google.com/schemas/reader/atom/"}
    document = ElementTree.fromstring(answer.content)  # noqa: S314 - our own
    first, second = document.findall("a:entry", space)
    labels = [[each.get("label") for each in entry.findall("a:category", space)] for entry in (first, second)]
    assert labels == [["read", "starred", "News"], ["fresh", "kept-unread", "News"]]
    assert first.findtext("a:id", namespaces=space) == long_id(number)
    more = document.findtext("gr:continuation", namespaces=space)
    rest = phone.client.get(f"/reader/atom/feed%2F{person.feeds[0]}?n=2&c={more}&xt={READ}")
    assert rest.text.count("<entry") == 1


@given(
    st.lists(
        st.tuples(st.text(st.characters(codec="utf-8"), min_size=1), st.text(st.characters(codec="utf-8")))
    )
)
def test_forms_are_read_as_the_library_reads_them(fields: list[tuple[str, str]]) -> None:
    assert _pairs(urlencode(fields).encode()) == fields
    odd = "&".join(f"{name}={value}" for name, value in fields)
    assert _pairs(odd.encode()) == parse_qsl(odd, keep_blank_values=True)


def test_form_of_a_million_percent_signs_takes_little_memory_and_time() -> None:
    tracemalloc.start()
    began = time.thread_time()
    try:
        for form in (b"a=" + b"%" * 1_900_000, b"a=" + b"%41" * 600_000):
            [(name, value)] = _pairs(form)
            assert (name, value[-1]) in (("a", "%"), ("a", "A"))
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
    finally:
        tracemalloc.stop()
    assert time.thread_time() - began < 20


def test_texts_are_sanitised_in_json_and_atom(person: Person, store: Store, clock: FakeClock) -> None:
    clock.advance(1_000)
    arrive(store, 1, clock(), "<script>alert(1)</script><a href=/next onclick=alert(1)>next</a>")
    app = person.app_at()
    newest = app.ids("n=1")[0]
    shown = [
        app.get("stream/contents?n=1")["items"],
        app.get(f"stream/items/contents?i={newest}")["items"],
    ]
    texts = [items[0]["summary"]["content"] for items in shown]  # type: ignore[index]
    atom = ElementTree.fromstring(app.client.get("/reader/atom?n=1").text)  # noqa: S314 - our own
    texts.append(atom.findtext(".//{*}entry/{*}content") or "")
    for text in texts:
        assert '<a href="https://items.example/next"' in text
        assert "script" not in text and "onclick" not in text


def test_apps_of_two_people_see_nothing_of_each_other(
    person: Person, store: Store, clock: FakeClock, app: FastAPI
) -> None:
    with store.writing() as connection:
        bob = add_user(connection, name="bob", now=clock())
        _, password = add_app_password(connection, user_id=bob.id, name="phone", now=clock())
    ann, other = person.app_at(), App(app, "bob", password)
    number = ann.ids(f"s={ALL}")[0]
    assert other.get("subscription/list")["subscriptions"] == []
    assert other.ids(f"s=feed/{person.feeds[0]}") == other.ids("s=feed/https://alpha.example/") == []
    answer = other.client.post(f"{API}/stream/items/contents", content=f"i={number}").json()
    assert answer["items"] == []
    assert other.post("edit-tag", f"i={number}&a={STARRED}&a={READ}") == "OK"
    assert other.post("mark-all-as-read", f"s=feed/{person.feeds[0]}") == "OK"
    assert ann.ids(f"s={STARRED}") == ann.ids(f"s={READ}") == []
    edited = other.client.post(
        f"{API}/subscription/edit", data={"ac": "edit", "s": f"feed/{person.feeds[0]}"}
    )
    assert edited.status_code == 404


def test_form_of_a_stranger_is_not_taken_apart(
    store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read(request: object) -> Parameters:
        raise AssertionError("read before it is known who asks")

    monkeypatch.setattr(Parameters, "read", read)
    stranger = TestClient(create_app(store, settings), base_url=ADDRESS)
    for form in (b"%41" * 600_000, b"i=1&" * 40_000 + b"T=ann/wrong", b"T=" + b"%" * 1_900_000):
        assert stranger.post("/reader/api/0/edit-tag", content=form).status_code == 401
