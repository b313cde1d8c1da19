"""What reader apps send, one after the other, and what they need of the answers.

The sequences of newsboat and Liferea were recorded from the programs; the others are as their sources build them.
`{…}` stands for what the app took from an earlier answer.
"""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from headwater.model import Item
from headwater.store.core.database import Store
from headwater.store.people.app_passwords import add_app_password
from headwater.store.people.users import add_user
from headwater.store.reading.items import ItemChange, write_items
from headwater.web.google_reader.names import long_id
from tests.clock import FakeClock
from tests.web.api.conftest import ADDRESS
from tests.web.api.test_reading import arrive
from tests.web.test_google_reader import ALL, API, READ, STARRED, Person, app, person, sources

__all__ = ["app", "person", "sources"]

FRESHRSS = "/api/greader.php"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
SPELLINGS: dict[str, Callable[[int], str]] = {
    "decimal, as listed": str,
    "decimal of a signed number": lambda number: str(number - 2**64 if number >= 2**63 else number),
    "sixteen hexadecimal digits": lambda number: f"{number:016x}",
    "long": long_id,
    "long without zeros": lambda number: f"tag:google.com,2005:reader/item/{number:x}",
}


class Phone:
    """Sends requests as they are written, and adds nothing but the address."""

    def __init__(self, person: Person, prefix: str = "") -> None:
        self.client = TestClient(person.app, base_url=ADDRESS, raise_server_exceptions=False)
        self.prefix, self.person = prefix, person
        self.auth = ""

    def sign_in(self, form: str) -> None:
        filled = form.format(name="ann", password=quote(self.person.password))
        answer = self.client.post(f"{self.prefix}/accounts/ClientLogin", content=filled, headers=FORM)
        lines = dict(line.split("=", 1) for line in answer.text.split())
        self.auth = lines["Auth"]

    def ask(self, method: str, path: str, form: str = "", *, signed: bool = True) -> Any:
        headers = {"Authorization": f"GoogleLogin auth={self.auth}"} if signed else {}
        if form:
            headers |= FORM
        answer = self.client.request(method, self.prefix + path, content=form, headers=headers)
        assert answer.status_code == 200, (method, path, answer.text)
        is_json = answer.headers["content-type"].startswith("application/json")
        return answer.json() if is_json else answer.text

    def get(self, path: str) -> Any:
        return self.ask("GET", path)

    def post(self, path: str, form: str) -> Any:
        return self.ask("POST", path, form)

    def numbers(self, query: str) -> list[int]:
        return [
            int(each["id"]) for each in self.get(f"{API}/stream/items/ids?output=json&{query}")["itemRefs"]
        ]


def test_newsboat(person: Person) -> None:
    phone = Phone(person)
    phone.sign_in(
        "service=reader&Email={name}&Passwd={password}&source=newsboat%2F2.21.0&accountType=HOSTED_OR_GOOGLE"
        "&continue=http://www.google.com/"
    )
    feeds = phone.get(f"{API}/subscription/list?output=json")["subscriptions"]
    assert {each["title"] for each in feeds} == {"alpha", "beta", "gamma"}
    stream = quote(next(each["id"] for each in feeds if each["title"] == "alpha"), safe="")
    document = phone.get(f"/reader/atom/{stream}?n=100")
    assert document.count("<entry") == document.count('label="fresh"') == 3
    number = phone.numbers(f"s={stream}")[0]
    token = phone.get(f"{API}/token")
    read = f"i={long_id(number)}&a={READ}&r=user/-/state/com.google/kept-unread&ac=edit&T={token}"
    assert phone.post(f"{API}/edit-tag", read) == "OK"
    assert phone.numbers(f"s={READ}") == [number]
    unread = (
        f"i={long_id(number)}&r={READ}&a=user/-/state/com.google/kept-unread"
        f"&a=user/-/state/com.google/tracking-kept-unread&ac=edit&T={token}"
    )
    assert phone.post(f"{API}/edit-tag", unread) == "OK"
    assert phone.numbers(f"s={READ}") == []
    assert phone.post(f"{API}/edit-tag", f"i={long_id(number)}&a={STARRED}&ac=edit&T={token}") == "OK"
    share = f"i={long_id(number)}&a=user/-/state/com.google/broadcast&ac=edit&T={token}"
    assert phone.post(f"{API}/edit-tag", share) == "OK"  # sharing is left out without an error
    assert phone.numbers(f"s={STARRED}") == [number]
    assert phone.post(f"{API}/mark-all-as-read", f"s=feed/{person.feeds[0]}&T={token}") == "OK"
    assert 'label="read"' in phone.get(f"/reader/atom/{stream}?n=100")


def test_liferea(person: Person, store: Store, clock: FakeClock) -> None:
    phone = Phone(person, FRESHRSS)
    phone.sign_in("service=reader&Email={name}&Passwd={password}&source=liferea&continue=http://news.example")
    feeds = phone.get(f"{API}/subscription/list?output=json")["subscriptions"]
    assert all(each["url"] and each["title"] and each["id"] for each in feeds)
    stream = quote(feeds[0]["id"], safe="")
    ids = phone.numbers(f"s={stream}&client=liferea&n=50&merge=true")
    # It asks for items without the header, and brings what signs it in as `T`.
    form = f"output=json&mediaRss=true&T={phone.auth}" + "".join(f"&i={each}" for each in ids)
    items = phone.ask("POST", f"{API}/stream/items/contents", form, signed=False)["items"]
    assert [each["id"] for each in items] == [long_id(each) for each in ids]
    assert all(each["canonical"][0]["href"] and not each.get("marked") for each in items)
    url = quote(feeds[0]["url"], safe="")
    item = quote(items[0]["id"], safe="")
    for change, stream_name, expected in (
        (f"a={quote(READ, safe='')}", READ, [ids[0]]),
        (
            f"a=user%2F-%2Fstate%2Fcom.google%2Fkept-unread&r={quote(READ, safe='')}",
            READ,
            [],
        ),
        ("a=user%2F-%2Fstate%2Fcom.google%2Ftracking-kept-unread", READ, []),
        (f"a={quote(STARRED, safe='')}", STARRED, [ids[0]]),
    ):
        token = phone.get(f"{API}/token")
        edit = f"i={item}&s=feed%2F{url}&{change}&ac=edit-tags&T={token}&async=true"
        assert phone.post(f"{API}/edit-tag?client=liferea", edit) == "OK"
        assert phone.numbers(f"s={stream_name}") == expected
    again = phone.ask("POST", f"{API}/stream/items/contents", form, signed=False)["items"]
    assert [each.get("marked") for each in again] == [True] + [None] * (len(ids) - 1)
    token = phone.get(f"{API}/token")
    gone = f"s={stream}&i=null&ac=unsubscribe&T={token}"
    assert phone.post(f"{API}/subscription/edit?client=liferea", gone) == "OK"
    assert len(phone.get(f"{API}/subscription/list?output=json")["subscriptions"]) == 2


def test_what_signs_in_by_form_is_the_whole_of_it(person: Person) -> None:
    phone = Phone(person)
    phone.sign_in("Email={name}&Passwd={password}")
    path = f"{ADDRESS}{API}/stream/items/contents"
    for form in (f"T={phone.get(f'{API}/token')}&i=1", "T=ann/x&i=1", "i=1"):
        answer = phone.client.post(path, content=form, headers=FORM)
        assert (answer.status_code, answer.headers["Google-Bad-Token"]) == (401, "true"), form
    wrong = {"Authorization": "GoogleLogin auth=ann/x", **FORM}
    assert phone.client.post(path, content=f"T={phone.auth}&i=1", headers=wrong).status_code == 401
    assert phone.client.get(path, params={"T": phone.auth, "i": "1"}).status_code == 401


@pytest.mark.parametrize("name", ["李明", "a+b@news.example", "o.b-c_d"])
def test_user_names_of_all_letters_sign_in(person: Person, store: Store, clock: FakeClock, name: str) -> None:
    with store.writing() as connection:
        user = add_user(connection, name=name, now=clock())
        _, password = add_app_password(connection, user_id=user.id, name="phone", now=clock())
    client = TestClient(person.app, base_url=ADDRESS)
    answer = client.post("/accounts/ClientLogin", data={"Email": name, "Passwd": password})
    auth = dict(line.split("=", 1) for line in answer.text.split())["Auth"]
    assert auth.isascii()
    header = {"Authorization": f"GoogleLogin auth={auth}"}
    assert client.get(f"{API}/user-info", headers=header).json()["userName"] == name
    form = f"T={auth}&i=1"
    assert client.post(f"{API}/stream/items/contents", content=form, headers=FORM).status_code == 200


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_rss_guard(person: Person, spelling: str) -> None:
    phone = Phone(person, FRESHRSS)
    phone.sign_in("Email={name}&Passwd={password}")
    assert phone.get(f"{API}/user-info?output=json")["userName"] == "ann"
    folders = [each["id"] for each in phone.get(f"{API}/tag/list?output=json")["tags"] if "type" in each]
    listed = phone.get(f"{API}/subscription/list?output=json")["subscriptions"]
    assert {each["categories"][0]["id"] for each in listed if each["categories"]} == set(folders)
    for name in (STARRED, ALL):
        phone.numbers(f"s={quote(name, safe='')}&n=200000&ot=1")
    ids = phone.numbers(f"s={quote(ALL, safe='')}&n=200000&xt={READ}&ot=1")
    names = [SPELLINGS[spelling](each) for each in ids]
    form = "&".join(f"i={quote(each, safe='')}" for each in names)
    items = phone.post(f"{API}/stream/items/contents?output=json&n=200000", form)["items"]
    assert [each["id"] for each in items] == [long_id(each) for each in ids]
    assert {each["origin"]["streamId"] for each in items} == {each["id"] for each in listed}
    assert phone.post(f"{API}/edit-tag", f"a={READ}&" + "&".join(f"i={each}" for each in names[:4])) == "OK"
    assert phone.numbers(f"s={ALL}&xt={READ}&n=100") == ids[4:]
    assert phone.post(f"{API}/edit-tag", f"r={READ}&i={names[0]}") == "OK"
    assert phone.numbers(f"s={ALL}&xt={READ}&n=100") == [ids[0], *ids[4:]]


def test_netnewswire(person: Person, clock: FakeClock) -> None:
    phone = Phone(person, FRESHRSS)
    phone.sign_in("Email={name}&Passwd={password}")
    token = phone.get(f"{API}/token")
    tags = phone.get(f"{API}/tag/list?output=json")["tags"]
    assert "user/-/label/News" in {each["id"] for each in tags if each.get("type") == "folder"}
    feed = f"feed/{person.feeds[2]}"
    move = f"T={token}&s={feed}&ac=edit&a=user/-/label/Mine&t=New%20name"
    assert phone.post(f"{API}/subscription/edit", move) == "OK"
    renamed = f"T={token}&s=user/-/label/Mine&dest=user/-/label/Ours"
    assert phone.post(f"{API}/rename-tag", renamed) == "OK"
    listed = {each["id"]: each for each in phone.get(f"{API}/subscription/list?output=json")["subscriptions"]}
    assert (listed[feed]["title"], listed[feed]["categories"][0]["label"]) == ("New name", "Ours")
    move = f"T={token}&s={feed}&ac=edit&r=user/-/label/Ours&a=user/-/label/News"
    assert phone.post(f"{API}/subscription/edit", move) == "OK"
    found = phone.numbers(f"n=1000&ot={int(clock()) - 90 * 86_400}&s={quote(ALL, safe='')}")
    form = "&".join(f"i=tag:google.com,2005:reader/item/{each:x}" for each in found)
    entries = phone.post(f"{API}/stream/items/contents", f"T={token}&output=json&{form}")["items"]
    assert [each["id"] for each in entries] == [long_id(each) for each in found]
    # An item that has gone is left out without an error.
    assert phone.post(f"{API}/stream/items/contents", f"T={token}&output=json&i=fffffff")["items"] == []
    starring = f"T={token}&a={STARRED}&i={entries[0]['id']}&i={entries[1]['id']}"
    assert phone.post(f"{API}/edit-tag", starring) == "OK"
    assert phone.numbers(f"n=1000&s={STARRED}") == found[:2]
    assert phone.post(f"{API}/disable-tag", f"T={token}&s=user/-/label/Ours") == "OK"


def test_fluent_reader(person: Person, store: Store, clock: FakeClock) -> None:
    phone = Phone(person)
    phone.sign_in("Email={name}&Passwd={password}")
    assert phone.get(f"{API}/user-info")["userName"] == "ann"
    unread = phone.numbers(f"s={ALL}&xt={READ}&n=1000")
    assert phone.numbers(f"xt={READ}&n=1000") == unread  # as to Inoreader, without a stream
    assert phone.numbers(f"it={STARRED}&n=1000") == []
    seen: list[Any] = []
    more = ""
    while True:
        page = phone.get(f"{API}/stream/contents?output=json&n=4&ot={int(clock()) - 1000}{more}")
        seen += page["items"]
        if "continuation" not in page:
            break
        more = f"&c={page['continuation']}"
    last = [each["id"].rsplit("/", 1)[1] for each in seen]
    assert sorted(int(each, 16) for each in last) == sorted(unread)
    assert all(each["canonical"][0]["href"] is not None for each in seen)
    # It joins names, as hexadecimal digits or as decimal ones.
    assert phone.post(f"{API}/edit-tag", f"i={last[0]}&i={int(last[1], 16)}&a={READ}") == "OK"
    assert len(phone.numbers(f"s={ALL}&xt={READ}&n=1000")) == len(unread) - 2
    assert phone.post(f"{API}/mark-all-as-read", f"s=feed%2F{person.feeds[0]}") == "OK"


def test_news_plus_and_feedme(person: Person, clock: FakeClock) -> None:
    phone = Phone(person, FRESHRSS)
    phone.sign_in(
        "accountType=HOSTED_OR_GOOGLE&service=reader&Email={name}&Passwd={password}&source=newsplus"
    )
    ck = int(clock()) * 1000
    for path in ("preference/stream/list", "tag/list", "subscription/list", "unread-count"):
        assert phone.get(f"{API}/{path}?client=newsplus&output=json&ck={ck}")
    stream = quote(ALL, safe="")
    page = phone.get(
        f"{API}/stream/contents/{stream}?client=newsplus&ck={ck}&n=4&r=n&xt={READ}&ot={int(clock()) - 86_400}"
    )
    assert len(page["items"]) == 4
    rest = phone.get(f"{API}/stream/contents/{stream}?client=newsplus&n=4&xt={READ}&c={page['continuation']}")
    assert len(rest["items"]) == 2 and "continuation" not in rest
    # News+ ends with an error at a list without an item, unless the list has the number 0.
    empty = phone.get(f"{API}/stream/items/ids?s={STARRED}&n=100&client=newsplus")
    assert [each["id"] for each in empty["itemRefs"]] == ["0"]
    assert phone.post(f"{API}/stream/items/contents?client=newsplus", "i=0")["items"] == []
    form = "".join(f"&i={each['id']}" for each in page["items"])
    token = phone.get(f"{API}/token")
    assert phone.post(f"{API}/edit-tag?client=newsplus", f"T={token}&a={READ}{form}") == "OK"
    until = int(clock() * 1e6) + 10**6
    assert phone.post(f"{API}/mark-all-as-read?client=newsplus", f"T={token}&s={stream}&ts={until}") == "OK"
    assert phone.numbers(f"s={ALL}&xt={READ}") == []


def test_items_without_address_have_the_feeds(person: Person, store: Store, clock: FakeClock) -> None:
    """Apps take the first of `canonical` without looking whether there is one."""
    change = ItemChange("new", Item("bare", title="bare"), b"bare", b"bare", (), b"hash", clock())
    with store.writing() as connection:
        write_items(connection, [(1, (change,), clock())])
    phone = Phone(person)
    phone.sign_in("Email={name}&Passwd={password}")
    items = phone.get(f"{API}/stream/contents/feed/{person.feeds[0]}?n=20")["items"]
    bare = next(each for each in items if each["title"] == "bare")
    assert bare["canonical"] == [{"href": "https://alpha.example/"}]
    assert bare["alternate"] == [{"href": "https://alpha.example/", "type": "text/html"}]


def test_netnewswire_asks_since_a_fraction_of_a_second(
    person: Person, store: Store, clock: FakeClock
) -> None:
    phone = Phone(person, FRESHRSS)
    phone.sign_in("Email={name}&Passwd={password}")
    clock.advance(100)
    arrive(store, 3, clock(), "new")
    ids = f"output=json&n=10000&xt={READ}&s={quote(ALL, safe='')}"
    new = phone.numbers(f"ot={clock() - 50:.6f}&{ids}")
    assert len(new) == 1
    # It decodes the answer strictly: a number for `updated`, and `alternate`, `categories` and `origin` with each.
    form = f"T={phone.get(f'{API}/token')}&output=json&i={new[0]:x}"
    answer = phone.post(f"{API}/stream/items/contents", form)
    assert answer["updated"] == int(clock())
    assert answer["items"][0].keys() >= {"id", "summary", "alternate", "categories", "origin"}


def test_vienna(person: Person, clock: FakeClock) -> None:
    phone = Phone(person)
    phone.sign_in("Email={name}&Passwd={password}")
    ck = int(clock())
    feed = quote("https://alpha.example/", safe="")
    page = phone.get(
        f"{API}/stream/contents/feed/{feed}?client=ViennaRSS&comments=false&likes=false&ot=0&n=500&ck={ck}"
        "&output=json"
    )
    assert [each["title"] for each in page["items"]] == ["a3", "a2", "a1"]
    assert page["updated"] == ck  # it ends with an error at a text
    unread = phone.numbers(f"ck={ck}&client=ViennaRSS&s=feed/{feed}&xt={READ}&n=1000")
    assert len(unread) == 3
    assert phone.numbers(f"ck={ck}&client=ViennaRSS&s=feed/{feed}&it={STARRED}&n=1000") == []
    form = f"a={STARRED}&s=feed/{feed}&i={long_id(unread[0])}&T={phone.get(f'{API}/token')}"
    assert phone.post(f"{API}/edit-tag", form) == "OK"
    assert phone.numbers(f"ck={ck}&client=ViennaRSS&s=feed/{feed}&it={STARRED}&n=1000") == unread[:1]


def test_capy_reader(person: Person) -> None:
    phone = Phone(person, FRESHRSS)
    # Everything in the address, and an empty form.
    login = f"{FRESHRSS}/accounts/ClientLogin?Email=ann&Passwd={quote(person.password)}"
    phone.auth = dict(line.split("=", 1) for line in phone.client.post(login).text.split())["Auth"]
    stale = {"Authorization": "GoogleLogin auth=ann/stale"}
    answer = phone.client.get(f"{FRESHRSS}{API}/subscription/list?output=json", headers=stale)
    assert (answer.status_code, answer.headers["X-Reader-Google-Bad-Token"]) == (401, "true")
    feeds = phone.get(f"{API}/subscription/list?output=json")["subscriptions"]
    needed = ("id", "title", "url", "htmlUrl", "iconUrl")
    assert all(isinstance(each[name], str) for each in feeds for name in needed)
    seen: list[int] = []
    more = ""
    while True:
        page = phone.get(f"{API}/stream/items/ids?s={ALL}{more}&n=4&xt={READ}&output=json")
        seen += [int(each["id"]) for each in page["itemRefs"]]
        if "continuation" not in page:
            break
        more = f"&c={quote(page['continuation'], safe='')}"
    assert len(set(seen)) == 6
    form = "&".join(f"i={each:016x}" for each in seen)
    items = phone.post(f"{API}/stream/items/contents?output=json", form)["items"]
    assert [each["id"] for each in items] == [long_id(each) for each in seen]
    assert all(isinstance(each[name], str) for each in items for name in ("title", "author"))
    assert phone.post(f"{API}/edit-tag?output=json", f"i={seen[0]:016x}&T=old&a={quote(READ)}") == "OK"
    assert phone.numbers(f"s={READ}") == [seen[0]]


def test_read_you(person: Person) -> None:
    """It ends with an error at a subscription in no folder, so it is shown one."""
    phone = Phone(person)
    phone.client.headers["User-Agent"] = "ReadYou/0.14.1(37)"
    phone.client.get("/healthz")
    form = {"output": "json", "Email": "ann", "Passwd": person.password, "client": "ReadYou"}
    phone.auth = phone.client.post("/accounts/ClientLogin", data=form).json()["Auth"]

    def folders() -> dict[str, str]:
        listed = phone.get(f"{API}/subscription/list?output=json")["subscriptions"]
        return {each["title"]: each["categories"][0]["label"] for each in listed}

    assert folders() == {"alpha": "News", "beta": "News / World", "gamma": "Uncategorized"}
    edit = f"{API}/subscription/edit?output=json"
    gamma = f"ac=edit&s=feed%2F{person.feeds[2]}"
    assert phone.post(edit, f"{gamma}&a=user%2F-%2Flabel%2FNews&r=user%2F-%2Flabel%2FUncategorized") == "OK"
    assert folders()["gamma"] == "News"
    assert phone.post(edit, f"{gamma}&a=user%2F-%2Flabel%2FUncategorized&r=user%2F-%2Flabel%2FNews") == "OK"
    assert folders()["gamma"] == "Uncategorized"
    tags = phone.get(f"{API}/tag/list?output=json")["tags"]
    assert "user/-/label/Uncategorized" not in {each["id"] for each in tags}
    other = person.app_at()
    shown = {each["title"]: each for each in other.get("subscription/list")["subscriptions"]}  # type: ignore[attr-defined]
    assert shown["gamma"]["categories"] == []


def test_readrops_signs_in_with_a_form_in_parts(person: Person) -> None:
    phone = Phone(person, FRESHRSS)
    parts = {"Email": (None, "ann"), "Passwd": (None, person.password)}
    answer = phone.client.post(f"{FRESHRSS}/accounts/ClientLogin", files=parts)
    phone.auth = dict(line.split("=", 1) for line in answer.text.split())["Auth"]
    most = 2**31 - 1  # what it sends for all
    page = phone.get(f"{API}/stream/contents/{ALL}?xt={READ}&xt={STARRED}&n={most}")
    assert len(page["items"]) == 6
    unread = phone.numbers(f"xt={READ}&s={quote(ALL, safe='')}&n={most}")
    assert phone.post(f"{API}/edit-tag", f"T=x&a={READ}&i={long_id(unread[0])}") == "OK"
    assert phone.numbers(f"xt=user/-/state/com.google/unread&s={ALL}&n=2500") == unread[:1]
    large = {"Email": (None, "ann"), "Passwd": (None, "x" * 30_000)}
    assert phone.client.post(f"{API}/edit-tag", files=large).status_code == 401
