"""Hostile feeds, pages, items, searches, templates and requests, all at once: a healthy user notices nothing.

A real `serve` process collects, shows and publishes what attackers have written, while another person uses it. Every
request of theirs is answered in time, memory stays small, and the process ends when it is told to.
"""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import quote, urlsplit

import pytest

from headwater.model import Item, Result
from headwater.sources.adding import add_unvisited, read_new_source
from headwater.store.collecting.sources import add_source
from headwater.store.core.database import Store
from headwater.store.core.tables import items, sources
from headwater.store.people.app_passwords import add_app_password, fever_key
from headwater.store.people.keys import add_key
from headwater.store.people.subscriptions import OWNER, subscribe
from headwater.store.reading.cursors import create_cursor
from headwater.store.reading.items import ItemChange, write_items
from headwater.store.reading.outlets import Outlet, add_outlet
from headwater.store.reading.results import NewResult, write_results
from headwater.store.reading.selection import Selection
from headwater.web.limits import STRANGERS
from tests.command import Headwater
from tests.databases import copy_sqlite
from tests.hostile import (
    BODIES,
    DEEP_TEMPLATES,
    EXPRESSIONS,
    FEEDS,
    PAGES,
    SEARCHES,
    TEMPLATES,
    bodies_of_requests,
    template_of,
)
from tests.origin import Answer, Origin

pytestmark = pytest.mark.slow

MOST_SECONDS = 2.0  # of any request of a healthy user
MOST_HEALTH_SECONDS = 1.0
MOST_MEGABYTES = 400.0
LONG_ITEMS = 60  # of the longest text that is stored
STOP_SECONDS = 30.0  # for what is under way, as documented; ending takes a little more
ANSWERED_SECONDS = 120.0  # every request of an attacker ends, too
VISITED_SECONDS = 240.0


def overload() -> float:
    """By how much this machine has more to do than the tests themselves: the limits above are those of a free one."""
    usual = 2.0 * (os.cpu_count() or 1)
    return max(1.0, os.getloadavg()[0] / usual)


HEALTHY = (
    b'<rss version="2.0"><channel><title>Healthy</title><item><guid>1</guid><title>Good news</title>'
    b"<description>A quiet day at the lake</description></item></channel></rss>"
)


def ask(
    address: str, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, float, bytes]:
    """The status of an answer, how long it took and what it says."""
    parts = urlsplit(address)
    connection = HTTPConnection(str(parts.hostname), parts.port, timeout=ANSWERED_SECONDS)
    began = time.monotonic()
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        said = answer.read()
        return answer.status, time.monotonic() - began, said
    finally:
        connection.close()


@dataclass
class Healthy:
    """A person who goes on using the dashboard and the API, and how long each answer took at worst."""

    address: str
    key: str
    item_id: int
    worst: dict[str, float] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    at_home: threading.Event = field(default_factory=threading.Event)  # has seen every page once
    stopped: threading.Event = field(default_factory=threading.Event)

    def look_around(self) -> None:
        """Again and again. The first round is not counted: the process has just started, and nothing attacks it."""
        edits = 0
        while not self.stopped.is_set():
            if edits == 1:
                self.worst.clear()
                self.at_home.set()
            edits += 1
            edit = json.dumps({"name": f"healthy {edits % 5}"}).encode()
            for method, path, body in (
                ("GET", "/", None),
                ("GET", "/items", None),
                ("GET", "/items?search=lake", None),
                ("GET", f"/items/{self.item_id}", None),
                ("GET", "/sources", None),
                ("GET", "/sources/1", None),
                ("GET", "/runs", None),
                ("GET", "/outlets/healthy.xml", None),
                ("GET", "/api/items?search=lake", None),
                ("GET", "/api/sources", None),
                ("PATCH", "/api/sources/1", edit),
                ("GET", "/readyz", None),
            ):
                self._ask(method, path, body)
                if self.stopped.wait(0.05):
                    return

    def look_at_health(self) -> None:
        while not self.stopped.wait(0.1):
            self._ask("GET", "/healthz", None)

    def _ask(self, method: str, path: str, body: bytes | None) -> None:
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        name = f"{method} {path.replace(str(self.item_id), 'N')}"
        try:
            status, seconds, _ = ask(self.address, method, path, body, **headers)
        except OSError as error:
            status, seconds = 0, 0.0
            self.wrong.append(f"{name}: {error}")
        if status != 200:
            self.wrong.append(f"{name}: {status}")
        self.worst[name] = max(self.worst.get(name, 0.0), seconds)


@contextmanager
def used(healthy: Healthy) -> Iterator[None]:
    threads = [threading.Thread(target=each) for each in (healthy.look_around, healthy.look_at_health)]
    for thread in threads:
        thread.start()
    try:
        assert healthy.at_home.wait(120)
        yield
    finally:
        healthy.stopped.set()
        for thread in threads:
            thread.join()


def megabytes(pid: int, name: str) -> float:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in text.splitlines() if line.startswith(name)), 0.0)


def children_of(pid: int) -> list[int]:
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [each for child in map(int, found) for each in (child, *children_of(child))]


class Watched:
    """The most memory that a process has held, and that it has held together with its children."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.alone = self.children = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(0.05):
            self.alone = max(self.alone, megabytes(self._pid, "VmHWM:"))
            held = [megabytes(child, "VmRSS:") for child in children_of(self._pid)]
            self.children = max(self.children, max(held, default=0.0))


class House:
    """A `serve` process, what is stored in it, and the origins that it visits."""

    def __init__(self, directory: Path, database_url: str, origin: Origin) -> None:
        self.headwater = Headwater(directory, database_url)
        self.headwater.environment |= {
            "HEADWATER_ALLOW_HOSTS": "127.0.0.0/8",
            "HEADWATER_PORT": "0",
            "COLLECTOR_TICK": "1",
            "PYTHONUNBUFFERED": "1",  # a new interpreter, which holds nothing of another's memory
        }
        self.origin = origin
        self.database_url = database_url
        self.key = ""
        self.item_id = 0
        self.hostile_ids: list[int] = []
        self.address = ""
        self.app_password = ""
        self.pid = 0

    def furnish(self, store: Store) -> None:
        """One healthy source, and items that were stored before there were limits, some of them changed since."""
        now = time.time()
        with store.writing() as connection:
            good = self.origin.route("/healthy", body=HEALTHY)
            add_unvisited(connection, read_new_source(good, name="healthy"), now)
            old = add_source(connection, name="old", type="rss.feed", url="http://127.0.0.9:9/", now=now)
            connection.execute(
                sources.update().where(sources.c.id == old.id).values(schedule_enabled=False, due_at=None)
            )
            told = [Item("h", title="Lake", content="A quiet day at the lake")]
            told += [Item(name, title="River", content=body.decode()) for name, body in BODIES.items()]
            told += [Item("giant", title="Giant", content="<div>" * 1_500_000)]
            for number, each in enumerate(told):
                key = b"%016d" % number
                write_items(connection, [(old.id, (ItemChange("new", each, key, key, (), key, now),), now)])
                again = Item(each.external_id, title="River again", content=(each.content or "")[3:] + " x")
                change = ItemChange("changed", again, key, key, (), b"new" + key, now)
                if number:
                    write_items(connection, [(old.id, (change,), now + 1)])
            ids = [row.id for row in connection.execute(items.select().order_by(items.c.id))]
            self.item_id, self.hostile_ids = ids[0], ids[1:]
            long = b"<p>" + b"word " * 99_000
            for number in range(LONG_ITEMS):
                key = b"long%012d" % number
                each = Item(key.decode(), title="Long", content=long.decode())
                write_items(connection, [(old.id, (ItemChange("new", each, key, key, (), key, now),), now)])
            made = [
                NewResult(item_id, 1, Result("full_text", format="html", body=each.content), now)
                for item_id, each in zip(self.hostile_ids, told[1:], strict=True)
            ]
            write_results(connection, made)
            subscribe(connection, OWNER, old.id, now)
            _, self.app_password = add_app_password(connection, user_id=OWNER, name="app", now=now)
            create_cursor(connection, "all", now=now)
            add_outlet(connection, Outlet("healthy", "Healthy", Selection(source_ids=(1,))), now)
            add_outlet(connection, Outlet("all", "All", Selection(), item_limit=100), now)
            _, self.key = add_key(connection, name="k", scopes=["admin"], now=now)

    @contextmanager
    def serving(self) -> Iterator[subprocess.Popen[str]]:
        process = self.headwater.start("serve")
        assert process.stdout is not None
        self.pid = process.pid
        try:
            self.address = process.stdout.readline().split()[-1]
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, float, bytes]:
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json", **headers}
        return ask(self.address, method, path, body, **headers)

    def url_of(self, name: str) -> str:
        """The address of a hostile document, on its own host, so that none waits for another."""
        return self.origin.url("/" + quote(name), host=f"127.0.7.{1 + [*FEEDS, *PAGES].index(name)}")

    def subscribe(self, store: Store) -> None:
        """Sources of every kind of hostile document, all due at once."""
        now = time.time()
        with store.writing() as connection:
            for name in FEEDS:
                add_unvisited(connection, read_new_source(self.url_of(name), name=name), now)
            for name in PAGES:
                selectors = {"item": "div, p, b", "title": "a", "link": "a", "date": "time"}
                wanted = read_new_source(self.url_of(name), "web.scraper", selectors, name=name)
                add_unvisited(connection, wanted, now)
            url = self.url_of("many JSON items")
            for number, expression in enumerate(("items[].[@,@][]", "items[*].[@,@,@] | [] | []")):
                config = {"items": expression, "id": "[id,id,id] | [0] || id", "title": "to_string([@,@])"}
                wanted = read_new_source(f"{url}?{number}", "api.json", config, name=f"API {number}")
                add_unvisited(connection, wanted, now)

    def sources(self) -> list[Any]:
        found: list[Any] = self.read("/api/sources?limit=200")["sources"]
        return found

    def unvisited(self) -> list[str]:
        return [each["name"] for each in self.sources() if each["fetch_count"] == 0 and each["name"] != "old"]

    def run(self, template: dict[str, object]) -> list[int]:
        """The run of a template for a giant item; none if it cannot be read."""
        template = {**template, "name": f"hostile {time.monotonic()}"}
        status, _, said = self.ask("POST", "/api/templates", as_json(template))
        if status != 201:
            return []
        wanted = {"template_id": json.loads(said)["id"], "item_ids": [self.hostile_ids[-1]]}
        _, _, said = self.ask("POST", "/api/runs", as_json(wanted))
        return list(json.loads(said)["run_ids"])

    def is_going_on(self, run_id: int) -> bool:
        return self.read(f"/api/runs/{run_id}")["status"] in ("pending", "running")

    def read(self, path: str) -> Any:
        return json.loads(self.ask("GET", path)[2])


FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Attack(NamedTuple):
    """One request of an attacker's."""

    name: str
    method: str
    path: str
    body: bytes | None = None
    headers: dict[str, str] = {}  # noqa: RUF012 - never changed


def on_pages(house: House) -> list[Attack]:
    """Items that were stored before there were limits: shown, compared with what they said before, and listed."""
    places = [f"{prefix}/{n}" for n in house.hostile_ids for prefix in ("/items", "/api/items")]
    places += [f"/api/items/{n}/versions" for n in house.hostile_ids]
    places += ["/items", "/api/items?full=true&limit=100", "/api/raw-items?limit=100", "/sources/2"]
    return [Attack(place, "GET", place) for place in places]


def on_outlets(house: House) -> list[Attack]:
    """Outlets that show them, asked for by people without a key, ten times over."""
    places = [f"/outlets/all.{extension}" for extension in ("xml", "atom", "json")] * 10
    return [Attack(place, "GET", place, headers={"Authorization": ""}) for place in places]


def by_apps(house: House) -> list[Attack]:
    """Everything at once for reader apps and programs: whole items by the thousand, all that is kept of each."""
    reader = {"Authorization": f"GoogleLogin auth=admin/{house.app_password}"}
    fever = f"/fever/?api&api_key={fever_key('admin', house.app_password)}"
    digest = as_json({"name": "hostile", "schedule": "daily 07:30", "config": {"max_items": 1_000}})
    named = "&".join(f"i={number}" for number in house.hostile_ids)
    found = [
        Attack("Google Reader", "GET", "/reader/api/0/stream/contents?n=1000", headers=reader),
        Attack("Google Reader, oldest", "GET", "/reader/api/0/stream/contents?n=1000&r=o", headers=reader),
        Attack("Google Reader, Atom", "GET", "/reader/atom?n=1000", headers=reader),
        Attack("Google Reader, named", "GET", f"/reader/api/0/stream/items/contents?{named}", headers=reader),
        Attack("Google Reader, form", "POST", "/reader/api/0/edit-tag", b"%" * 1_900_000, {**reader, **FORM}),
        Attack("Fever", "GET", f"{fever}&groups&feeds&items&unread_item_ids"),
        Attack("Fever, oldest", "GET", f"{fever}&items&since_id=0"),
        Attack("entries", "GET", "/api/entries?limit=1000"),
        Attack("whole entries", "GET", "/api/entries?full=true&limit=1000"),
        Attack("whole items", "GET", "/api/items?full=true&limit=1000"),
        Attack("raw items", "GET", "/api/raw-items?limit=500"),
        Attack("cursor", "GET", "/api/cursors/all/items?limit=1000"),
        Attack("digest", "POST", "/api/digests", digest),
        Attack("digest preview", "POST", "/api/digests/hostile/preview"),
    ]
    found += [Attack(f"entry {n}", "GET", f"/api/entries/{n}") for n in house.hostile_ids]
    found += [Attack(f"results {n}", "GET", f"/api/items/{n}/results") for n in house.hostile_ids]
    for n in house.hostile_ids:
        found.append(Attack(f"bookmark of {n}", "POST", "/api/bookmarks", as_json({"item_id": n})))
    for name in PAGES:
        found.append(
            Attack(f"bookmark {name}", "POST", "/api/bookmarks", as_json({"url": house.url_of(name)}))
        )
    return [*found, Attack("bookmarks", "GET", "/api/bookmarks?limit=1000")]


def by_strangers(house: House) -> list[Attack]:
    """What someone without a key sends where forms are read before anyone is known."""
    without_key = {"Authorization": "", **FORM}
    bodies = {"percents": b"%" * 1_990_000, "fields": b"&" * 1_990_000, "a little": b"%" * 20_000}
    return [
        Attack(f"{name} to {path}", "POST", path, body, without_key)
        for name, body in bodies.items()
        for path in STRANGERS
    ] * 3


def by_search(house: House) -> list[Attack]:
    pages = ("/items", "/api/items", "/api/sources", "/sources")
    queries = [quote(text)[:60_000] for text in SEARCHES]
    return [
        Attack(f"{page} {number}", "GET", f"{page}?search={query}")
        for number, query in enumerate(queries)
        for page in pages
    ]


def by_preview(house: House) -> list[Attack]:
    """Hostile documents that are previewed before they are added."""
    found: list[Attack] = []
    own = {"Sec-Fetch-Site": "same-origin"}
    for number, name in enumerate((*PAGES, *FEEDS)):
        url = house.url_of(name)
        doors = [
            Attack(f"preview {name}", "GET", f"/sources/preview?url={quote(url)}", headers=own),
            Attack(f"add page {name}", "GET", f"/sources/add?url={quote(url)}", headers=own),
            Attack(f"discover {name}", "POST", "/api/sources/discover", as_json({"url": url})),
            Attack(f"add {name}", "POST", "/api/sources", as_json({"url": url})),
        ]
        found += (doors * 2)[number % 4 :][:2]  # each document through two doors, each door for half of them
    return found


def by_requests(house: House) -> list[Attack]:
    """Bodies that are deep, long or many, and templates and expressions that only have to be read."""
    paths = [
        "/api/templates/validate",
        "/api/templates",
        "/api/sources",
        "/api/outlets",
        "/api/sources/import",
    ]
    found = [
        Attack(f"{name} to {path}", "POST", path, body)
        for name, body in bodies_of_requests().items()
        for path in paths
    ]
    written = {
        f"body {name}": template_of("body", text) for name, text in (TEMPLATES | DEEP_TEMPLATES).items()
    }
    written |= {f"where {name}": template_of("where", text) for name, text in EXPRESSIONS.items()}
    written |= {f"items {name}": source_of(text) for name, text in EXPRESSIONS.items()}
    for name, data in written.items():
        path = "/api/sources" if "steps" not in data else "/api/templates/validate"
        found.append(Attack(f"{name} to {path}", "POST", path, as_json(data)))
    return found


def source_of(expression: str) -> dict[str, object]:
    config = {"items": expression, "id": "id"}
    return {"url": "http://127.0.0.1:9/", "type": "api.json", "config": config}


def as_json(data: object) -> bytes:
    return json.dumps(data).encode()


WAVES: dict[str, Callable[[House], list[Attack]]] = {
    "pages": on_pages,
    "outlets": on_outlets,
    "apps": by_apps,
    "strangers": by_strangers,
    "search": by_search,
    "preview": by_preview,
    "requests": by_requests,
}


def attack(house: House, attacks: list[Attack], at_once: int = 10) -> None:
    """Make all requests, so many at once: each is answered, none of them with an error of ours."""
    times: dict[str, float] = {}
    broken: list[str] = []

    def make(each: Attack) -> None:
        try:
            status, seconds, said = house.ask(each.method, each.path, each.body, **each.headers)
        except OSError as error:
            status, seconds, said = 0, ANSWERED_SECONDS, str(error).encode()
        times[each.name] = max(times.get(each.name, 0.0), seconds)
        if status >= 500 or not status:
            broken.append(f"{each.name}: {status} {said[:200]!r}")

    with ThreadPoolExecutor(at_once) as threads:
        for each in [threads.submit(make, each) for each in attacks]:
            each.result()
    slow = sorted(times.items(), key=lambda each: -each[1])[:3]
    print("attackers: " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in slow))
    assert broken == []


def judge(healthy: Healthy, watched: Watched) -> None:
    times = overload()
    worst = sorted(healthy.worst.items(), key=lambda each: -each[1])
    print("slowest: " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in worst[:3]))
    print(f"/healthz {healthy.worst['GET /healthz']:.2f} s; overload {times:.1f}")
    print(f"memory {watched.alone:.0f} MB, of a child {watched.children:.0f} MB")
    assert healthy.wrong == []
    assert worst[0][1] < MOST_SECONDS * times, worst[:5]
    assert healthy.worst["GET /healthz"] < MOST_HEALTH_SECONDS * times
    assert 0 < watched.alone < MOST_MEGABYTES
    assert watched.children < MOST_MEGABYTES


def stop(process: subprocess.Popen[str]) -> None:
    """Ends within the documented time, and a little for what has to be written down."""
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=STOP_SECONDS + 5)
    print(f"ended after {time.monotonic() - began:.1f} s with {process.returncode}")
    assert process.returncode in (0, 1)
    assert "Traceback" not in errors, errors


@pytest.fixture(scope="module")
def origin() -> Iterator[Origin]:
    with Origin(host="0.0.0.0") as opened:
        for name, make in FEEDS.items():
            opened.route("/" + quote(name), Answer(body=make()))
        for name, make in PAGES.items():
            opened.route("/" + quote(name), Answer(body=make(), content_type="text/html"))
        yield opened


@pytest.fixture
def house(tmp_path: Path, sqlite_template: Path, origin: Origin) -> House:
    """On SQLite: what is proved here is done before any database is asked."""
    return House(tmp_path, copy_sqlite(sqlite_template, tmp_path / "headwater.db"), origin)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("wave", WAVES)
def test_healthy_user_is_answered_while_attackers_ask(house: House, wave: str) -> None:
    with Store.open(house.database_url) as store:
        house.furnish(store)
    with house.serving() as process, Watched(house.pid) as watched:
        healthy = Healthy(house.address, house.key, house.item_id)
        with used(healthy):
            attack(house, WAVES[wave](house))
        judge(healthy, watched)
        stop(process)


@pytest.mark.timeout(1200)
def test_healthy_user_is_answered_while_hostile_sources_are_visited(house: House) -> None:
    with Store.open(house.database_url) as store:
        house.furnish(store)
        house.subscribe(store)
    with house.serving() as process, Watched(house.pid) as watched:
        healthy = Healthy(house.address, house.key, house.item_id)
        with used(healthy):
            deadline = time.monotonic() + min(VISITED_SECONDS * overload(), 1000.0)
            while waiting := house.unvisited():
                assert time.monotonic() < deadline, waiting
                time.sleep(0.5)
        judge(healthy, watched)
        print({each["name"]: each["last_error"] for each in house.sources()})
        stop(process)


@pytest.mark.timeout(1200)
def test_healthy_user_is_answered_while_hostile_templates_run(house: House) -> None:
    with Store.open(house.database_url) as store:
        house.furnish(store)
    written = [template_of("body", text) for text in TEMPLATES.values()]
    written += [template_of("where", text) for text in EXPRESSIONS.values()]
    with house.serving() as process, Watched(house.pid) as watched:
        healthy = Healthy(house.address, house.key, house.item_id)
        with used(healthy):
            run_ids = [run_id for data in written for run_id in house.run(data)]
            deadline = time.monotonic() + min(VISITED_SECONDS * overload(), 1000.0)
            while [run_id for run_id in run_ids if house.is_going_on(run_id)]:
                assert time.monotonic() < deadline
                time.sleep(0.5)
        assert len(run_ids) >= len(TEMPLATES), "those that can be read at all are run"
        assert {house.read(f"/api/runs/{run_id}")["status"] for run_id in run_ids} <= {
            "failed",
            "completed",
            "skipped",
        }
        judge(healthy, watched)
        stop(process)


@pytest.mark.timeout(300)
def test_process_ends_in_time_in_the_midst_of_hostile_work(house: House) -> None:
    with Store.open(house.database_url) as store:
        house.furnish(store)
        house.subscribe(store)
    with house.serving() as process:
        asking = ThreadPoolExecutor(8)
        for each in (*on_outlets(house)[:3], *on_pages(house)[:5], *by_preview(house)[-8:]):
            asking.submit(house.ask, each.method, each.path, each.body, **each.headers)
        deadline = time.monotonic() + 60
        while len(house.origin.requests) < 5:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        time.sleep(2)
        stop(process)
        asking.shutdown(wait=True)
