"""Behind a real nginx nothing is open that should be closed, and everything works that should work."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from headwater.store.core.database import Store
from headwater.store.people.keys import add_key, list_keys
from headwater.store.people.sessions import list_sessions, make_link
from headwater.store.reading.outlets import Outlet, add_outlet
from headwater.store.reading.selection import Selection
from tests.acceptance.test_push import free_port
from tests.cli.test_sign_in import Browser
from tests.command import Headwater
from tests.databases import copy_sqlite

pytestmark = pytest.mark.slow

PUBLIC = "news.example"
BARE = ""
FORWARDING = """
            proxy_set_header Host $host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header X-Forwarded-Proto $scheme;
            proxy_set_header X-Forwarded-Host $host;
"""
CONFIGURATION = """
daemon off;
pid {directory}/nginx.pid;
error_log {directory}/error.log;
worker_processes 1;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://127.0.0.1:{behind};
            {headers}
        }}
    }}
}}
"""


def nginx() -> str:
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if found is None:
        pytest.fail("nginx is not installed; this test needs it: apt-get install nginx-light")
    return found


@contextmanager
def proxied(directory: Path, behind: int, headers: str) -> Iterator[str]:
    """nginx in front of a port of this machine; its address."""
    port = free_port()
    directory.mkdir()
    file = directory / "nginx.conf"
    file.write_text(
        CONFIGURATION.format(directory=directory, port=port, behind=behind, headers=headers), encoding="utf-8"
    )
    process = subprocess.Popen(
        [nginx(), "-p", str(directory), "-c", str(file), "-e", str(directory / "error.log")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until_answered(process, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.communicate(timeout=60)


def wait_until_answered(process: subprocess.Popen[str], port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            return
        except OSError:
            assert process.poll() is None, process.stderr.read() if process.stderr else ""
            assert time.monotonic() < deadline
            time.sleep(0.05)
        finally:
            connection.close()


@contextmanager
def serving(headwater: Headwater, port: int, **environment: str) -> Iterator[None]:
    process = headwater.start("serve", HEADWATER_PORT=str(port), **environment)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().endswith(f":{port}/\n")
        yield
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.fixture
def database(tmp_path: Path, sqlite_template: Path) -> str:
    return copy_sqlite(sqlite_template, tmp_path / "headwater.db")


@pytest.fixture
def headwater(tmp_path: Path, database: str) -> Headwater:
    return Headwater(tmp_path, database)


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    with Store.open(database) as opened:
        yield opened


def session_addresses(store: Store) -> set[str | None]:
    with store.reading() as connection:
        return {session.address for session in list_sessions(connection, time.time())}


class Visitor(Browser):
    """A browser far away, as nginx sees it: it asks for the public name."""

    def ask(self, method: str, path: str, body: str | None = None, **headers: str) -> tuple[int, str]:
        headers = {"Host": PUBLIC, **headers}
        if body is not None:
            headers = {"Origin": f"https://{PUBLIC}", "Sec-Fetch-Site": "same-origin", **headers}
        return super().ask(method, path, body, **headers)


@pytest.mark.parametrize(
    ("headers", "password", "trusted"),
    [
        pytest.param(BARE, "", "", id="bare"),
        pytest.param(BARE, "correct horse", "", id="bare, password"),
        pytest.param(FORWARDING, "", "", id="forwarding"),
        pytest.param(FORWARDING, "correct horse", "127.0.0.1", id="forwarding, password, trusted"),
    ],
)
def test_a_public_address_closes_everything_and_signing_in_opens_it(
    headwater: Headwater, store: Store, tmp_path: Path, headers: str, password: str, trusted: str
) -> None:
    now = time.time()
    with store.writing() as connection:
        add_outlet(connection, Outlet("all", "All", Selection()), now)
        _, secret = add_key(connection, name="boss", scopes=["admin"], now=now)
        link = make_link(connection, now)
    port = free_port()
    environment = {
        "HEADWATER_PUBLIC_URL": f"https://{PUBLIC}",
        "HEADWATER_ADMIN_PASSWORD": password,
        "HEADWATER_TRUSTED_PROXIES": trusted,
    }
    with serving(headwater, port, **environment), proxied(tmp_path / "nginx", port, headers) as address:
        stranger = Visitor(address)
        for path in ("/", "/sources", "/settings", "/sources/export", "/live"):
            assert stranger.ask("GET", path)[0] == 303, path
        for path in ("/api/sources", "/api/keys", "/api/sessions", "/api/settings", "/metrics"):
            assert stranger.ask("GET", path)[0] == 401, path
        assert stranger.ask("POST", "/settings/keys", "name=mine&scope=admin")[0] in (303, 403)
        with store.reading() as connection:
            assert [key.name for key in list_keys(connection)] == ["boss"]
        for path in ("/healthz", "/readyz", "/outlets/all.xml", "/static/style.css", "/login"):
            assert stranger.ask("GET", path)[0] == 200, path

        status, body = Visitor(address).ask("GET", "/api/sources", Authorization=f"Bearer {secret}")
        assert (status, json.loads(body)["sources"]) == (200, [])

        assert stranger.sign_in("wrong horse") == 401
        ways_in = [secret, link, *([password] if password else [])]
        for way in ways_in:
            owner = Visitor(address)
            assert owner.sign_in(way) == 303
            for path in ("/", "/sources", "/settings", "/live"):
                assert owner.ask("GET", path)[0] == 200, path
            assert "HttpOnly" in owner.cookies["headwater_session"].OutputString()
            assert owner.cookies["headwater_session"]["secure"], "the public address is https"
        assert session_addresses(store) == {"127.0.0.1"}


@pytest.mark.parametrize("headers", [BARE, FORWARDING], ids=["bare", "forwarding"])
def test_behind_a_proxy_nothing_is_open_even_when_no_public_address_is_set(
    headwater: Headwater, tmp_path: Path, headers: str
) -> None:
    port = free_port()
    with serving(headwater, port), proxied(tmp_path / "nginx", port, headers) as address:
        stranger = Visitor(address)
        assert stranger.ask("GET", "/settings")[0] in (303, 400)
        assert stranger.ask("GET", "/api/sources")[0] in (400, 401)
        local = Browser(address)
        assert local.ask("GET", "/settings")[0] == 303, "nor under the name of this machine"
        assert Browser(f"http://127.0.0.1:{port}").ask("GET", "/settings")[0] == 200


@pytest.mark.parametrize("trusted", ["", "127.0.0.0/8"], ids=["unnamed", "trusted"])
def test_only_a_named_proxy_is_believed_about_addresses(
    headwater: Headwater, store: Store, tmp_path: Path, trusted: str
) -> None:
    port = free_port()
    environment = {
        "HEADWATER_PUBLIC_URL": f"https://{PUBLIC}",
        "HEADWATER_ADMIN_PASSWORD": "correct horse",
        "HEADWATER_TRUSTED_PROXIES": trusted,
    }
    forged = FORWARDING.replace("$proxy_add_x_forwarded_for", "$http_x_test_sender")
    with serving(headwater, port, **environment), proxied(tmp_path / "nginx", port, forged) as address:
        statuses = [
            Visitor(address).sign_in("wrong horse", **{"X-Test-Sender": f"192.0.2.{number}"})
            for number in range(13)
        ]
        assert statuses == ([401] * 13 if trusted else [401] * 10 + [429] * 3)
        honest = Visitor(address).sign_in("correct horse", **{"X-Test-Sender": "203.0.113.1, 198.51.100.7"})
        assert honest == (303 if trusted else 429)
        if trusted:
            told = session_addresses(store)
            assert told == {"198.51.100.7"}, "what the proxy appended, not what the sender wrote"
